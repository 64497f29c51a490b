"""One operation of a WebSocket connection: where its results go."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from starforge.api.transport import messages
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.following import Following
from starforge.api.transport.frames import text_frame
from starforge.api.transport.source import Joint

if TYPE_CHECKING:
    from starforge.api.transport.connection import Connection


class Operation:
    """A `Place`: `next` writes a frame at once, so that nothing can come between a client's `complete` and it."""

    __slots__ = ("_connection", "_prefix", "following", "id", "is_mutation", "is_subscription", "task")

    def __init__(self, operation_id: str, connection: "Connection[Any]") -> None:
        self.id = operation_id
        self._connection: Connection[Any] | None = connection
        self._prefix = messages.next_prefix(operation_id)
        self.task: asyncio.Task[None] | None = None
        self.following: Following | None = None
        self.is_mutation = False
        self.is_subscription = False

    @property
    def blocked(self) -> bool:
        return self._connection is not None and self._connection.blocked

    def next(self, payload: bytes) -> None:
        if self._connection is not None:
            self._connection.write(text_frame(self._prefix, payload, b"}"))

    async def room(self) -> None:
        if self._connection is not None:
            await self._connection.room()

    def fell_behind(self, joint: Joint) -> None:
        if self._connection is not None and self.following is not None:
            self._connection.start(self, partial(self.following.catch_up, joint))

    def ended(self, refused: RequestRefused | None) -> None:
        """The last word, unless the client has had it."""
        connection = self._connection
        if connection is None:
            return
        self.release()
        last = messages.complete(self.id) if refused is None else messages.error(self.id, refused.errors)
        connection.write(text_frame(last.encode()))
        connection.forget(self)

    def release(self) -> None:
        """Nothing is sent for it any more; what it did goes on only if it is a mutation."""
        self._connection = None
        if self.following is not None:
            self.following.end()
        if self.task is not None and not self.is_mutation and self.task is not asyncio.current_task():
            self.task.cancel()
