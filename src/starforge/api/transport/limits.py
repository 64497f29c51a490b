"""How much one client may ask of the transport, and how long things may take."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class TransportLimits:
    """Sizes in bytes of UTF-8, times in seconds. The defaults are what production runs with; tests make them small."""

    body_bytes: int = 4 * MIB
    """A POST body: 1 MiB of inline code, escaped as JSON, fits."""
    body_timeout_s: float = 30
    """For a client to send its whole body."""
    execution_timeout_s: float = 30
    """For one query or mutation; the mutation itself goes on, only the wait ends."""
    authentication_timeout_s: float = 10

    document_bytes: int = 64 * KIB
    document_tokens: int = 1_000
    """The largest page of our dashboards needs 394, introspection 163; validation takes time with the square of it."""
    document_depth: int = 16
    """Introspection, the deepest document in use, needs 15."""
    document_aliases: int = 30
    """Counted where a fragment is spread, so a fragment used twice counts twice."""
    document_fields: int = 5_000
    """Fields after fragments are spread out."""
    document_cost: int = 10_000
    """Points by the schema's note on cost, with the variables it comes with. Our dashboards need up to 2,541."""
    cached_documents: int = 512
    cached_tokens: int = 100_000
    """Of all cached documents together; they take about 430 bytes each."""
    waiting_documents: int = 64
    """Different new texts that wait to be checked, which takes up to a tenth of a second each."""

    init_timeout_s: float = 5
    frame_bytes_before_init: int = 64 * KIB
    frame_bytes: int = MIB
    ping_interval_s: float = 12
    pong_timeout_s: float = 12
    send_timeout_s: float = 10
    """For what waits to leave to have left; a peer that reads slower is closed as slow."""
    keep_alive_s: int = 75
    """For the next request on an HTTP connection: longer than a proxy keeps it (60 s, usually), which would use it again
    just when we end it."""
    heartbeat_s: float = 12
    """Between comments in an event stream that is quiet."""
    operations_per_connection: int = 100
    connections: int = 12_000
    """WebSockets and event streams of one gateway."""
    connections_per_caller: int = 1_000
    in_flight_requests: int = 256
    """Queries and mutations that run at the same time in one gateway."""
