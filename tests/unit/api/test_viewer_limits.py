"""The limits that callers are shown are those that are in force."""

from starforge.api.transport.limits import TransportLimits
from starforge.api.viewer import Limits
from starforge.domain.spec import PlaygroundDefaults


def test_limits_are_those_of_the_connection_and_the_fleet() -> None:
    limits = Limits.of(TransportLimits(operations_per_connection=7), PlaygroundDefaults(max_s=9000))
    assert (limits.subscriptions_per_connection, limits.playground_seconds) == (7, 9000)
