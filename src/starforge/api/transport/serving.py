"""What uvicorn has to be started with."""

from starforge.api.transport.frames import FrameProtocol
from starforge.api.transport.http_protocol import GatewayHttpProtocol
from starforge.api.transport.limits import TransportLimits


def uvicorn_options(limits: TransportLimits) -> dict[str, object]:
    """What uvicorn has to be started with: its own limits would be wider, and its own ping closes with a code (1011)
    after which clients do not come back."""
    return {
        "http": GatewayHttpProtocol,
        "timeout_keep_alive": limits.keep_alive_s,
        "ws": FrameProtocol,
        "ws_max_size": limits.frame_bytes,
        "ws_ping_interval": None,
        "ws_per_message_deflate": False,
    }
