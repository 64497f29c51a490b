"""Whether a spec would find its GPUs, as the schema tells it."""

from datetime import datetime
from typing import ClassVar, Self

import strawberry

from starforge.api.capacity.desk import Known
from starforge.api.capacity.holders import Holder
from starforge.api.directives import list_size
from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.payloads import UserError
from starforge.domain.capacity import fit
from starforge.domain.capacity.fit import FitVerdict

NODES_MAX = 100
MUST_END_MAX = 20


@strawberry.type(description="Whether one pool fits.")
class PoolFit(Mirror):
    pool: str = strawberry.field(description="Name of the pool.")
    verdict: FitVerdict = strawberry.field(description="Verdict for this pool, with the pools before it placed.")
    message: str = strawberry.field(description="Sentence for a person with the numbers that decide.")
    placeable: int = strawberry.field(description="Machines that could be placed now.")
    nodes: list[str] = strawberry.field(description="Nodes they would go to; at most 100.")

    made: ClassVar[Made] = {"nodes": lambda this: list(this.mirrored.nodes[:NODES_MAX])}

    @classmethod
    def of(cls, row: fit.PoolFit) -> Self:
        return mirror(cls, row)


@strawberry.type(description="Whether a spec fits one fleet.")
class FleetFit(Mirror):
    known: strawberry.Private[Known | None]
    fleet: str = strawberry.field(description="Name of the fleet.")
    verdict: FitVerdict = strawberry.field(description="Verdict for this fleet.")
    message: str = strawberry.field(description="Sentence for a person.")
    observed_at: datetime | None = strawberry.field(description="When the numbers were last seen; null if never.")
    pools: list[PoolFit] = strawberry.field(
        description="The verdict for each pool, in the spec's order.", directives=[list_size(3)]
    )
    must_end: list[Holder] = strawberry.field(
        description=(
            "Who would have to end for it to fit, those that end first in front, at most 20; empty unless LATER."
        ),
        directives=[list_size(5)],
    )
    latest_start_at: datetime | None = strawberry.field(
        description="When it would fit at the latest if every holder kept to its clock; null if that can't be told."
    )

    made: ClassVar[Made] = {
        "pools": lambda this: [PoolFit.of(one) for one in this.mirrored.pools],
        "must_end": lambda this: _holders(this.mirrored, this.known),
    }

    @classmethod
    def of(cls, row: fit.FleetFit, known: Known | None) -> Self:
        """`known` is what the holders are shown by; None for a verdict that names none."""
        return mirror(cls, row, known=known)


def _holders(row: fit.FleetFit, known: Known | None) -> list[Holder]:
    return [Holder.of(one, known) for one in row.must_end[:MUST_END_MAX]] if known else []


@strawberry.type(description="Whether a spec would find its GPUs.")
class FitReport:
    verdict: FitVerdict = strawberry.field(
        description="Verdict for the fleet asked for, or for the best one if none was."
    )
    message: str = strawberry.field(
        description="Sentence for a person; a job that is refused or waits is told the same."
    )
    fleet: str | None = strawberry.field(description="Fleet it would run on; null if NEVER or UNKNOWN.")
    fleets: list[FleetFit] = strawberry.field(
        description="The report of each fleet considered, best first; at most 100.", directives=[list_size(5)]
    )
    user_errors: list[UserError] = strawberry.field(
        description=(
            'What is wrong with the spec itself, with paths from ["spec"]; the verdict is NEVER if there is anything.'
        ),
        directives=[list_size(5)],
    )

    @classmethod
    def of(cls, row: fit.FleetFit, known: Known | None = None) -> Self:
        """The report of the one fleet that there is."""
        is_open = row.verdict in (FitVerdict.NOW, FitVerdict.LATER)
        return cls(
            verdict=row.verdict,
            message=row.message,
            fleet=row.fleet if is_open else None,
            fleets=[FleetFit.of(row, known)],
            user_errors=[],
        )

    @classmethod
    def refused(cls, message: str, errors: list[UserError]) -> Self:
        """The report of a spec that no fleet would take as it is."""
        return cls(verdict=FitVerdict.NEVER, message=message, fleet=None, fleets=[], user_errors=errors)
