"""Health, asked once."""

import strawberry
from strawberry import Info

from starforge.api.context import of_info
from starforge.api.directives import cost
from starforge.api.health.types import Health


@strawberry.type
class HealthQueries:
    @strawberry.field(
        description="Whether StarForge and its fleets can do their work, for a banner and for on-call.",
        directives=[cost(5)],
    )
    async def health(self, info: Info) -> Health:
        context = of_info(info)
        known = await context.services.health.look()
        return Health.of(known.health, context.ports.fleet.kind)
