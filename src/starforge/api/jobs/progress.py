"""What the code reports about itself."""

from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Self

import strawberry
from strawberry import argument

from starforge.api.directives import cost, list_size
from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.scalars import BigInt
from starforge.domain import progress
from starforge.domain.progress import NonFinite


@strawberry.type(description="One value of a metric.")
class MetricValue(Mirror):
    name: str = strawberry.field(description="Name.")
    value: float | None = strawberry.field(
        description=("The value; null if it is not a finite number, as JSON has no such numbers.")
    )
    non_finite: NonFinite | None = strawberry.field(
        description=("Which non-finite number it is; null if it is finite.")
    )
    step: BigInt | None = strawberry.field(description="Step it was reported at; null if without one.")
    at: datetime = strawberry.field(description="When it was reported.")

    @classmethod
    def of(cls, row: progress.MetricPoint) -> Self:
        return mirror(cls, row)


@strawberry.type(description="What the code last reported about itself.")
class Progress(Mirror):
    points: strawberry.Private[tuple[progress.MetricPoint, ...]]
    step: BigInt | None = strawberry.field(
        description=("Steps done, in whatever unit the code counts; null if it reports metrics only.")
    )
    total: BigInt | None = strawberry.field(description="Steps there are to do; null if the code did not say.")
    fraction: float | None = strawberry.field(description=("Step divided by total, 0 to 1; null if either is missing."))
    steps_per_second: float | None = strawberry.field(
        description=("Steps per second over the last minutes; null if it can't be told.")
    )
    estimated_end_at: datetime | None = strawberry.field(
        description=("When the run would end at that speed; null if it can't be told.")
    )
    reported_at: datetime = strawberry.field(description="When it was reported.")

    @strawberry.field(description="Newest value of each metric, in order of first report.", directives=[list_size(5)])
    async def metrics(
        self,
        names: Annotated[list[str] | None, argument("Which metrics, 100 at most; the first 100 if left out.")] = None,
    ) -> list[MetricValue]:
        wanted = self.points if names is None else [point for point in self.points if point.name in set(names)]
        return [MetricValue.of(point) for point in wanted[:100]]

    made: ClassVar[Made] = {
        "points": "mirrored.metrics",
        "estimated_end_at": lambda this: _end(this.mirrored),
    }

    @classmethod
    def of(cls, row: progress.Progress) -> Self:
        return mirror(cls, row)


def _end(row: progress.Progress) -> datetime | None:
    speed = row.steps_per_second
    if not speed or speed <= 0 or row.step is None or row.total is None:
        return None
    return row.reported_at + timedelta(seconds=min(max(row.total - row.step, 0) / speed, 10 * 365 * 86400))


@strawberry.type(
    description=(
        "A metric's curve in columns: entries with the same index belong together, ready for a chart library."
    ),
    directives=[cost(5)],
)
class MetricSeries:
    name: str = strawberry.field(description="Name.")
    attempt: int = strawberry.field(description="Attempt it is of, from 1.")
    reported: int = strawberry.field(description="Points that were reported in the range.")
    downsampled: bool = strawberry.field(
        description=("True when neighbouring points were merged to keep within `maxPoints`.")
    )
    origin: datetime = strawberry.field(
        description=("Start of the time axis: when the attempt became RUNNING, or its first report if that is earlier.")
    )
    steps: list[BigInt] = strawberry.field(
        description=("Step of each point, the last one of a bucket; counted from 1 where the code gave none.")
    )
    seconds: list[float] = strawberry.field(description="Time of each point in seconds from `origin`.")
    values: list[float | None] = strawberry.field(
        description=("Value of each point as `bucket` says; null where no finite number was reported.")
    )
    minimums: list[float | None] = strawberry.field(
        description=("Smallest finite value in each bucket; null where there is none.")
    )
    maximums: list[float | None] = strawberry.field(
        description=("Largest finite value in each bucket; null where there is none.")
    )
    non_finites: list[int] = strawberry.field(
        description=("How many values in each bucket were not finite, so that a diverged loss can be marked.")
    )
    latest: MetricValue | None = strawberry.field(description=("The newest value; null if there is none in the range."))
