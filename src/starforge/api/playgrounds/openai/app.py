"""`/playgrounds/<id>/v1/…`: who may ask, how much at once, and until when; then the playground's server answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from starforge.api.context import Services
from starforge.api.playgrounds.openai.asking import Asked, read, read_body
from starforge.api.playgrounds.openai.limits import OpenAiLimits
from starforge.api.playgrounds.openai.refusals import Refused, refused
from starforge.api.playgrounds.openai.reply import Reply
from starforge.api.playgrounds.openai.tokens import Tokens
from starforge.api.playgrounds.openai.using import Tally, Uses
from starforge.api.transport.callers import Credentials
from starforge.domain.errors import Forbidden, NotFound, StarForgeError
from starforge.domain.names import PlaygroundId
from starforge.domain.playground import Playground, PlaygroundState
from starforge.domain.playground_door import Door, ServerAnswer, ServerRequest
from starforge.domain.rights import Caller, Role

LAST_S = 2.0
"""Before the grace of SIGTERM is over: what still runs then is told that this gateway ends."""
STARTING_S = 5
CANCEL_AGAIN_S = 0.5
_log = logging.getLogger(__name__)
Authenticate = Callable[[Credentials], Awaitable[Caller]]


class OpenAiApi:
    """An ASGI application; it answers within `running` alone."""

    def __init__(self, services: Services, authenticate: Authenticate, limits: OpenAiLimits) -> None:
        ports = services.ports
        self._services, self._authenticate, self._limits = services, authenticate, limits
        self._uses = Uses(services, gateway=ports.random()[:16], most=limits.requests, now=ports.now)
        self._door: Door | None = None
        self._running: set[asyncio.Timeout] = set()
        self._ends_at: float | None = None

    @property
    def active(self) -> int:
        """Requests that are being answered."""
        return self._uses.active

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For as long as it lasts, requests are answered and counted."""
        async with self._services.ports.fleet.door() as self._door:
            telling = asyncio.create_task(self._uses.tell(), name="uses of playgrounds")
            try:
                yield
            finally:
                telling.cancel()
                await asyncio.wait([telling])
                await self._uses.tell_now()

    def end_by(self, at: float | None) -> None:
        """Answers end with an error at `at` of the loop's time at the latest; None for no such time."""
        if at is None:
            return
        self._ends_at = at - LAST_S
        for limit in self._running:
            limit.reschedule(min(self._ends_at, limit.when() or self._ends_at))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._serve(scope, receive, send)
        except ClientDisconnect:
            return
        except Refused as problem:
            await problem.response()(scope, receive, send)
        except StarForgeError as error:
            if error.code == "INTERNAL_SERVER_ERROR":
                _log.exception("A request to a playground failed.")
            await refused(error).response()(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await self._authenticate(_credentials(scope))
        asked = read(scope)
        playground = await self._open(caller, asked.playground)
        with self._uses.one(playground.id) as tally:
            request = asked.with_body(await read_body(receive, scope, self._limits))
            tally.requests += 1
            await while_there(receive, self._exchange(playground, request, tally, scope, send))

    async def _open(self, caller: Caller, id_: PlaygroundId) -> Playground:
        """The playground, if the caller may use it and it answers."""
        found = (await self._services.thread(self._services.ports.store.playgrounds_by_id, [id_])).get(id_)
        if found is None or not caller.sees(found.spec.machine.project):
            raise NotFound(f"There is no playground {id_}.")
        if not caller.has(Role.SUBMITTER):
            raise Forbidden(
                f"Talking to a playground needs a token with the role {Role.SUBMITTER}; ask an administrator."
            )
        if not found.answers:
            raise _closed(found)
        return found

    async def _exchange(
        self, playground: Playground, request: ServerRequest, tally: Tally, scope: Scope, send: Send
    ) -> None:
        began = asyncio.get_running_loop().time()

        def first() -> None:
            tally.first_tokens.append(asyncio.get_running_loop().time() - began)

        def counted(tokens: Tokens) -> None:
            tally.prompt_tokens += tokens.prompt
            tally.completion_tokens += tokens.completion

        reply = Reply(scope, send, self._limits, first=first, counted=counted)
        try:
            with self._limited() as limit:
                await self._ask(playground, request, reply, limit)
        except (Refused, StarForgeError) as error:
            problem = error if isinstance(error, Refused) else refused(error)
            if not reply.begun:
                raise problem from error
            _log.info("An answer of %s broke off: %s", playground.id, problem.message)
            await reply.break_off(problem)

    async def _ask(self, playground: Playground, request: ServerRequest, reply: Reply, limit: asyncio.Timeout) -> None:
        try:
            async with limit, AsyncExitStack() as asking:
                answer = await self._head(asking, playground, request)
                await reply.pass_on(answer, request.path)
        except TimeoutError as error:
            if self._ends_at is not None:
                raise Refused(503, "This gateway ends; ask again, and another one answers.", "gateway_ends") from error
            message = f"The answer took longer than {self._limits.total_s:g} seconds and was ended."
            raise Refused(504, message, "took_too_long") from error

    async def _head(self, asking: AsyncExitStack, playground: Playground, request: ServerRequest) -> ServerAnswer:
        if self._door is None:
            raise RuntimeError("the gateway is not running")
        try:
            async with asyncio.timeout(self._limits.first_byte_s):
                return await asking.enter_async_context(self._door.ask(playground, request))
        except TimeoutError as error:
            message = (
                f"The server of the playground did not begin to answer within {self._limits.first_byte_s:g} seconds."
            )
            raise Refused(504, message, "took_too_long") from error

    @contextmanager
    def _limited(self) -> Iterator[asyncio.Timeout]:
        at = asyncio.get_running_loop().time() + self._limits.total_s
        limit = asyncio.timeout_at(at if self._ends_at is None else min(at, self._ends_at))
        self._running.add(limit)
        try:
            yield limit
        finally:
            self._running.discard(limit)


async def while_there(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and cancel it when the client goes away or this is canceled."""
    working, gone = asyncio.create_task(work), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        while not working.done():  # a cancellation can be lost where it meets a result
            working.cancel()
            await asyncio.wait({working}, timeout=CANCEL_AGAIN_S)
        await asyncio.wait({gone})
    if not working.cancelled():
        working.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _credentials(scope: Scope) -> Credentials:
    """A client of the OpenAI API that has no key sends none, or an empty one."""
    given = Headers(scope=scope).get("authorization", "").strip()
    host = scope["client"][0] if scope.get("client") else None
    return Credentials(None if given.lower() in {"", "bearer"} else given, host)


def _closed(playground: Playground) -> Refused:
    """Why it does not answer: not yet, or not any more."""
    reason = playground.reason
    why = f" {reason.message}" if reason else ""
    if playground.state is PlaygroundState.STARTING:
        message = f"{playground.id} is STARTING and does not answer yet.{why}"
        return Refused(503, message, "playground_starting", retry_after=str(STARTING_S))
    return Refused(409, f"{playground.id} is {playground.state} and answers no more.{why}", "playground_ended")


__all__ = ["Asked", "OpenAiApi", "while_there"]
