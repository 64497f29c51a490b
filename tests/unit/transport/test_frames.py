from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from starforge.api.transport.frames import text_frame


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=3), st.sampled_from([0, 100, 66_000]))
def test_a_frame_reads_back_as_its_parts(parts: list[bytes], more: int) -> None:
    parts = [*parts, b"x" * more]
    client = ClientProtocol(parse_uri("ws://localhost/"), max_size=None)
    client.state = client.state.OPEN
    client.parser = client.parse()
    next(client.parser)
    client.receive_data(text_frame(*parts))
    (frame,) = client.events_received()
    assert isinstance(frame, Frame)
    assert (frame.opcode, bytes(frame.data), frame.fin) == (Opcode.TEXT, b"".join(parts), True)
