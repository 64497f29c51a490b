"""How many jobs there are per value of one of their properties."""

from typing import Annotated, Self

import strawberry
from strawberry import Info, argument

from starforge.api.context import of_info
from starforge.api.directives import cost, list_size
from starforge.api.inputs import JobFilter
from starforge.api.mirror import mirror
from starforge.api.paging import bad_input
from starforge.domain import queries
from starforge.domain.queries import JobCountKey
from starforge.domain.queries import JobFilter as Which

GROUPS_MAX = 100
TIMEOUT_S = 5.0


@strawberry.type(description="How many jobs share a value.")
class JobCount:
    value: str | None = strawberry.field(
        description="The value, an enum's name where it is one; null for jobs without one."
    )
    count: int = strawberry.field(description="How many jobs.")

    @classmethod
    def of(cls, row: queries.JobCount) -> Self:
        return mirror(cls, row)


@strawberry.type
class CountQueries:
    @strawberry.field(
        description=(
            "How many matching jobs there are per value of one property, the 100 largest groups, for tabs, charts and "
            "menus; null, with an error, if it took too long."
        ),
        directives=[cost(20), list_size(20)],
    )
    async def job_counts(
        self,
        info: Info,
        by: Annotated[JobCountKey, argument("The property to group by.")],
        filter: Annotated[  # noqa: A002
            JobFilter | None, argument("Which jobs; all that the caller may see if left out.")
        ] = None,
        label_key: Annotated[
            str | None, argument("Key of the label to group by; required with LABEL and refused otherwise.")
        ] = None,
    ) -> list[JobCount] | None:
        if (by is JobCountKey.LABEL) != bool(label_key):
            raise bad_input("`labelKey` is required with LABEL and refused otherwise.")
        context = of_info(info)
        which = context.caller.jobs(filter.which() if filter else Which())
        count = context.ports.store.job_counts
        rows = await context.services.thread(count, which, by, label=label_key, at_most=GROUPS_MAX, timeout_s=TIMEOUT_S)
        return [JobCount.of(row) for row in rows]
