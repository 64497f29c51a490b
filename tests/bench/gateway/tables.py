"""The figures as tables in markdown, one a scenario."""

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
_FAN_OUT = (
    ("server", "server"), ("subscribers", "subscribers"), ("setup_s", "setup s"), ("per_second", "deliveries/s"),
    ("p50_ms", "p50 ms"), ("p99_ms", "p99 ms"), ("max_ms", "max ms"), ("cpu_us", "CPU µs a delivery"),
    ("server_cpu", "server's core"), ("kib_per_subscriber", "KiB a subscriber"), ("kib_per_subscriber_busy", "… busy"),
    ("bytes_per_message", "bytes"), ("lost", "skipped or lost"), ("doubled", "doubled"), ("missing", "never came"),
    ("published_per_s", "changes/s"), ("generator_cpu", "generator's core"), ("others_cpu", "others on the server's"),
)  # fmt: skip
_COLUMNS = {
    "a": ("Subscribers of one job, 10 changes a second", _FAN_OUT),
    "b": ("Subscribers over 500 jobs, 250 changes a second", _FAN_OUT),
    "c": (
        "`jobs(first: 50)`, 11 fields a job",
        (
            ("server", "server"), ("page", "page"), ("per_second", "requests/s"), ("p50_ms", "p50 ms"),
            ("p99_ms", "p99 ms"), ("cpu_us", "CPU µs"), ("bytes_per_message", "bytes"), ("generator_cpu", "generator's core"),
            ("others_cpu", "others on the server's"),
        ),
    ),
    "d": (
        "`submitJob` 10 times a second beside the subscribers of a",
        (
            ("server", "server"), ("subscribers", "subscribers"), ("submit_count", "answered"), ("submit_unanswered", "not yet"),
            ("submit_p50_ms", "p50 ms"), ("submit_p99_ms", "p99 ms"), ("submit_max_ms", "max ms"),
            ("per_second", "deliveries/s"), ("p99_ms", "delivery p99 ms"),
        ),
    ),
    "e": (
        "Lost and doubled over an outage",
        (
            ("server", "server"), ("outage", "outage"), ("subscribers", "subscribers"), ("expected", "messages"),
            ("lost", "lost"), ("doubled", "doubled"), ("missing", "never came"), ("alive", "alive"), ("live", "connected"),
            ("cuts", "cuts"), ("max_ms", "max ms"),
        ),
    ),
}  # fmt: skip


def tables(rows: Sequence[Row]) -> str:
    """All tables for which there are rows."""
    made = []
    for scenario, (title, columns) in _COLUMNS.items():
        if mine := [row for row in rows if row["scenario"] == scenario]:
            heads = [head for _, head in columns]
            lines = [f"\n({scenario}) {title}\n", _line(heads), _line(["---"] * len(heads))]
            made += [*lines, *(_line([_shown(row, key) for key, _ in columns]) for row in mine)]
            made += [f"\n{row['server']}: {row['broke']}" for row in mine if "broke" in row]
    return "\n".join(made)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(row: Row, key: str) -> str:
    value = row.get(key, "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
