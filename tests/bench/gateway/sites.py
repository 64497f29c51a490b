"""The servers by name."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from gateway.ours import Site, starforge
from gateway.peer_servers import ariadne_command, gqlgen_command, mercurius_command, peer

SITES: dict[str, Callable[[Path], AbstractContextManager[Site]]] = {
    "ours": starforge,
    "ariadne": peer("ariadne", ariadne_command, "/graphql/"),
    "mercurius": peer("mercurius", mercurius_command),
    "mercurius-jit": peer("mercurius-jit", mercurius_command, JIT="1"),
    "gqlgen": peer("gqlgen", gqlgen_command),
}
