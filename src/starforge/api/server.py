"""Runs a gateway until SIGTERM, and then ends it without cutting anybody off."""

import asyncio
import gc
from typing import Any, Protocol

import uvicorn

from starforge.api.app import Gateway
from starforge.api.transport.desk import Desk
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.serving import uvicorn_options

YOUNG_OBJECTS = 20_000
"""Objects made before Python looks for garbage: with its own 700, it looks at every connection again and again."""


class Served(Protocol):
    @property
    def desk(self) -> Desk[Any]: ...


class GatewayServer(uvicorn.Server):
    """Drains first: event streams end, sockets are closed with 1012 as soon as what they asked for was answered."""

    def __init__(self, config: uvicorn.Config, gateway: Served) -> None:
        super().__init__(config)
        self._gateway = gateway

    async def shutdown(self, sockets: Any = None) -> None:
        desk, grace_s = self._gateway.desk, self.config.timeout_graceful_shutdown
        desk.grace_over = None if grace_s is None else asyncio.get_running_loop().time() + grace_s
        desk.draining.set()
        await super().shutdown(sockets)


def server(gateway: Gateway, *, host: str, port: int, grace_s: int, limits: TransportLimits) -> GatewayServer:
    """A server that ends at most `grace_s` seconds after SIGTERM."""
    config = uvicorn.Config(
        gateway.asgi,
        host=host,
        port=port,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=grace_s,
        **uvicorn_options(limits),  # type: ignore[arg-type]
    )
    return GatewayServer(config, gateway)


def tune_garbage() -> None:
    """Call once everything is imported and made: what is there by then is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 50, 100)
