"""What a caller is told about the points they may spend."""

from typing import Self

import strawberry

from starforge.api.budget import Budget
from starforge.domain.rights import Caller


@strawberry.type(description="A budget that refills as time goes by.")
class RateLimit:
    maximum: int = strawberry.field(description="Most points it can hold.")
    available: int = strawberry.field(description="Points in it now.")
    restore_per_second: int = strawberry.field(description="Points that come back per second.")

    @classmethod
    def of(cls, budget: Budget, caller: Caller) -> Self:
        """That of the caller, as it is now."""
        return cls(
            maximum=budget.maximum,
            available=budget.available(caller),
            restore_per_second=budget.restore_per_second,
        )
