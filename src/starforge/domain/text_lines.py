"""Lines of a log as people read them."""

from dataclasses import dataclass
from datetime import datetime

from starforge.domain.logs import LINE_MAX_BYTES, LineMark, cut_at


@dataclass(frozen=True)
class TextLine:
    """A line as people read it, without its end."""

    text: str
    at: datetime | None
    marks: tuple[LineMark, ...] = ()


def cut_off(held: bytearray, at: datetime | None) -> list[TextLine]:
    """Takes what is beyond one line's length off the front of `held`, as lines that are cut."""
    told: list[TextLine] = []
    start = 0
    while len(held) - start > LINE_MAX_BYTES:
        size = cut_at(held[start : start + LINE_MAX_BYTES])
        told.append(text_line(bytes(held[start : start + size]), at, cut=True))
        start += size
    del held[:start]
    return told


def text_line(data: bytes, at: datetime | None, *, cut: bool = False) -> TextLine:
    """Bytes as text: what is not UTF-8, and NUL, which no database takes, becomes U+FFFD."""
    marks = [LineMark.CUT] if cut else []
    text = data.decode(errors="replace").replace("\0", "\ufffd")
    if text.encode() != data:
        marks.append(LineMark.INVALID_UTF8)
    return TextLine(text, at, tuple(marks))
