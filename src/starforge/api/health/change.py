"""A step of the live stream of health."""

import strawberry

from starforge.api.feed.types import Change
from starforge.api.health.types import Health


@strawberry.type(description="A change of health.")
class HealthChange(Change):
    health: Health | None = strawberry.field(description="Health after this step; null in a bookmark.")
