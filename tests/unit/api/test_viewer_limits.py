"""The limits that callers are shown are those that are in force."""

from starforge.api.transport.limits import TransportLimits
from starforge.api.viewer import Limits


def test_subscriptions_of_a_connection_are_its_operations() -> None:
    assert Limits.of(TransportLimits(operations_per_connection=7)).subscriptions_per_connection == 7
