"""The operations of one WebSocket connection."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic

from graphql import OperationType

from starforge.api.transport import messages
from starforge.api.transport.callers import CallerT, Incoming
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.execution import Executor, Operation
from starforge.api.transport.messages import Subscribe
from starforge.api.transport.peer import Peer


class IdInUse(Exception):
    """An operation with this id has not ended yet."""


@dataclass(eq=False)
class _Running:
    id: str
    is_wanted: bool = True
    """False as soon as nothing may be sent for it any more."""
    is_mutation: bool = False


class Operations(Generic[CallerT]):
    def __init__(self, executor: Executor[CallerT], peer: Peer, *, most: int) -> None:
        self._executor = executor
        self._peer = peer
        self._most = most
        self._by_id: dict[str, _Running] = {}
        self._tasks: dict[_Running, asyncio.Task[None]] = {}

    async def start(self, message: Subscribe, incoming: Incoming[CallerT]) -> None:
        """Returns when it is started. Raises IdInUse."""
        if message.id in self._by_id:
            raise IdInUse(message.id)
        if len(self._tasks) >= self._most:
            await self._peer.send(messages.error(message.id, self._too_many().errors))
            return
        running = self._by_id[message.id] = _Running(message.id)
        task = self._tasks[running] = asyncio.create_task(self._run(running, message, incoming))
        task.add_done_callback(lambda _: self._forget(running))

    def _too_many(self) -> RequestRefused:
        sentence = f"{self._most} operations run on this connection, the most it may have: end one or open another."
        return RequestRefused(ErrorCode.TOO_MANY_SUBSCRIPTIONS, sentence)

    def stop(self, operation_id: str) -> None:
        """Does nothing for an id that is not running: its end and the client's wish may have crossed."""
        if running := self._by_id.get(operation_id):
            self._drop(running)

    async def end(self) -> None:
        """Ends all, and returns when they have: generators are closed, mutations are done or out of time."""
        for running in list(self._tasks):
            self._drop(running)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _drop(self, running: _Running) -> None:
        self._release(running)
        if not running.is_mutation:
            self._tasks[running].cancel()

    def _release(self, running: _Running) -> bool:
        """Frees the id. False if that was done before, and so nothing may be sent for it any more."""
        was_wanted, running.is_wanted = running.is_wanted, False
        if self._by_id.get(running.id) is running:
            del self._by_id[running.id]
        return was_wanted

    def _forget(self, running: _Running) -> None:
        self._release(running)
        del self._tasks[running]

    async def _run(self, running: _Running, message: Subscribe, incoming: Incoming[CallerT]) -> None:
        try:
            operation = await self._executor.prepare(message.request)
            running.is_mutation = operation.kind is OperationType.MUTATION
            await self._send_results(running, operation, incoming)
            last = messages.complete(running.id)
        except Exception as error:  # noqa: BLE001  because_of logs what is not meant for the client
            last = messages.error(running.id, RequestRefused.because_of(error).errors)
        await self._peer.send(last, claim=lambda: self._release(running))

    async def _send_results(self, running: _Running, operation: Operation, incoming: Incoming[CallerT]) -> None:
        if operation.kind is not OperationType.SUBSCRIPTION:
            response = await self._executor.answer(operation, incoming)
            await self._send(running, messages.next_result(running.id, response))
            return
        async with aclosing(self._executor.stream(operation, incoming)) as responses:
            async for response in responses:
                await self._send(running, messages.next_result(running.id, response))
                await asyncio.sleep(0)  # a generator that never waits must not keep the others from running

    async def _send(self, running: _Running, frame: str) -> None:
        await self._peer.send(frame, claim=lambda: running.is_wanted)
