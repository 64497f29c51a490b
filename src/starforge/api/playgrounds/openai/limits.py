"""How much may be asked of a playground through one gateway, and how long it may take."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class OpenAiLimits:
    """Sizes in bytes, times in seconds. The defaults are those of the settings; tests make them small."""

    body_bytes: int = 10 * MIB
    body_s: float = 30
    """For a client to send its whole body."""
    first_byte_s: float = 600
    """Until the server begins to answer: what does not stream comes at its end."""
    total_s: float = 1800
    requests: int = 128
    """To one playground at the same time."""
    keep_alive_s: float = 10
    """Between comments in an event stream that is quiet."""
    goodbye_s: float = 2
    """For a client to take the last event of an answer that is broken off."""
