"""The objects that the logs of an attempt are kept in: each is read back before it counts."""

from collections.abc import Sequence
from dataclasses import replace

from starforge.domain.actions.log_rows import row_pages
from starforge.domain.jobspec import canonical
from starforge.domain.logs import LogSource, checksum, text_of
from starforge.domain.names import RunKey
from starforge.domain.ports import Ports


def source_key(run: RunKey, source: str) -> str:
    """Object that holds the whole text of one log."""
    return f"logs/{run.job}/{run.attempt}/{source}.log"


def manifest_key(run: RunKey) -> str:
    """Object that lists every log of an attempt with lines, bytes and sha256."""
    return f"logs/{run.job}/{run.attempt}/manifest.json"


def store(ports: Ports, source: LogSource) -> LogSource:
    """Keep the text of a log; the source with what it is called and its checksum."""
    key = source_key(source.run, source.key)
    with ports.scratch() as scratch:
        path = scratch / "log"
        with path.open("wb") as file:
            for page in row_pages(ports.store, source):
                file.write(text_of(page))
        with path.open("rb") as file:
            sha256 = checksum(iter(lambda: file.read(1 << 20), b""))
        ports.objects.put(key, path)
        back = scratch / "back"
        ports.objects.fetch(key, back)
        with back.open("rb") as file:
            if checksum(iter(lambda: file.read(1 << 20), b"")) != sha256:
                raise OSError(f"{key} reads back otherwise than it was written")
    return replace(source, sha256=sha256, object_key=key)


def manifest_of(run: RunKey, sources: Sequence[LogSource]) -> bytes:
    """The canonical JSON that lists the logs of an attempt."""
    rows = [
        {
            "source": source.key,
            "object": source.object_key,
            "lines": source.lines,
            "bytes": source.bytes,
            "sha256": source.sha256,
            "state": source.state,
            "gaps": [{"after": gap.after_line, "message": gap.message, "lines": gap.lines} for gap in source.gaps],
        }
        for source in sorted(sources, key=lambda source: source.key)
    ]
    return canonical({"job": run.job, "attempt": run.attempt, "logs": rows})


def keep(ports: Ports, key: str, content: bytes) -> None:
    """Keep an object; OSError if it reads back otherwise."""
    ports.objects.put(key, content)
    if ports.objects.read(key) != content:
        raise OSError(f"{key} reads back otherwise than it was written")
