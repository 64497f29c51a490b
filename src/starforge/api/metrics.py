"""What one gateway does, for Prometheus: read from where it is counted, when somebody asks."""

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from starforge.api.feed.hub import Hub
from starforge.api.transport.counting import Spread
from starforge.api.transport.desk import Desk
from starforge.domain.health import CommandQueue


class GatewayMetrics(Collector):
    """`commands` tells what is known of the work behind the scenes, None while that is nothing yet."""

    def __init__(self, hub: Hub, desk: Desk[Any], commands: Callable[[], CommandQueue | None]) -> None:
        self._hub = hub
        self._desk = desk
        self._commands = commands

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges()
        yield from self._counters()
        yield _histogram(
            "starforge_delivery_lag_seconds",
            "From the commit of a change to when it was written to its subscribers.",
            self._desk.groups.lag,
        )
        yield _histogram(
            "starforge_request_seconds", "From a query or mutation that began to its answer.", self._desk.took
        )

    def _gauges(self) -> Iterator[Metric]:
        desk, hub = self._desk, self._hub
        connections = GaugeMetricFamily("starforge_connections", "Open connections that live on.", labels=["transport"])
        connections.add_metric(["websocket"], desk.connections.sockets)
        connections.add_metric(["sse"], desk.connections.streams)
        yield connections
        for name, help_, value in (
            ("subscriptions", "Subscriptions that are sent what comes.", desk.groups.members),
            ("groups", "Different live sources that subscriptions share.", len(desk.groups)),
            ("requests_in_flight", "Queries and mutations that run now.", desk.running),
            ("feed_position", "The newest position of the feed that was delivered here.", hub.position),
            ("feed_silent_seconds", "Since the feed was last heard of or read.", hub.silent_s),
            ("queue_depth", "Rows of the feed that wait to be told, of all sources.", hub.waiting),
        ):
            yield GaugeMetricFamily(f"starforge_{name}", help_, value)
        commands = self._commands()
        if commands:
            yield GaugeMetricFamily("starforge_commands_due", "Commands that are due and not done.", commands.due)
            parked = "Commands that failed too often and wait for a person."
            yield GaugeMetricFamily("starforge_commands_parked", parked, commands.parked)

    def _counters(self) -> Iterator[Metric]:
        desk, hub = self._desk, self._hub
        for name, help_, value in (
            ("deliveries", "Results sent to subscribers.", desk.groups.sent),
            ("events_executed", "Results made for live sources.", desk.groups.executed),
            (
                "gaps_repaired",
                "Times rows of the feed were read from the table, as they were not heard.",
                hub.gaps_repaired,
            ),
            ("subscribers_behind", "Times a reader was too slow and was caught up later.", desk.groups.fell_behind),
            ("slow_dropped", "Connections ended as nobody read them.", desk.connections.slow),
            ("resumed", "Subscriptions that began after a cursor.", desk.groups.resumed),
            ("shed", "Requests refused as too many ran.", desk.shed),
        ):
            yield CounterMetricFamily(f"starforge_{name}", help_, value)


def _histogram(name: str, help_: str, spread: Spread) -> Metric:
    family = HistogramMetricFamily(name, help_)
    family.add_metric([], buckets=spread.buckets(), sum_value=spread.total)
    return family
