"""Signed links to objects, for whoever may read them."""

from starforge.api.context import Context
from starforge.api.paging import bad_input
from starforge.api.values import SignedRequest
from starforge.domain.ports import Audience


async def link(context: Context, key: str | None, seconds: int) -> SignedRequest | None:
    """A signed GET of an object, None if there is none; a GraphQL error in subscriptions, or for a wrong life."""
    if key is None:
        return None
    if context.subscription:
        raise bad_input("A link is a secret for one caller: ask for it in a query, not in a subscription.")
    if not 60 <= seconds <= 3600:
        raise bad_input(f"`expiresInSeconds` must be 60 to 3,600, not {seconds}.")
    sign = context.ports.objects.sign_get
    return SignedRequest.of(await context.services.objects_thread(sign, key, seconds=seconds, audience=Audience.CLIENT))
