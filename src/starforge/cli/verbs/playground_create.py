"""`starforge playground create`."""

import asyncio
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from rich.console import Console

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.documents import CREATE_PLAYGROUND, FOLLOW_PLAYGROUND
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.live import Live
from starforge.cli.spans import span
from starforge.cli.submitting import again
from starforge.cli.verbs.playground import UNITS, no_playground, refuse
from starforge.cli.words import clean, clock_time
from starforge.domain.errors import Problem, UserMistake

_OUTCOMES = {"READY": ExitCode.SUCCEEDED, "EXPIRING": ExitCode.SUCCEEDED, "FAILED": ExitCode.FAILED}


def run(
    wanted: Mapping[str, object], *, ttl: str | None, idle: str | None, env: Sequence[str], wait: bool, as_json: bool
) -> ExitCode:
    given = _input(wanted, ttl, idle, env)
    with Gateway.from_settings(os.environ) as gateway:
        answer = again(lambda: gateway.ask(CREATE_PLAYGROUND, input=given))["createPlayground"]
        refuse(answer)
        playground = answer["playground"]
        if not as_json:
            known = "was started before" if answer["status"] == "REPLAYED" else "starts"
            err_console().print(f"The playground {playground['name']} {known} as {playground['id']}.", soft_wrap=True)
        if wait:
            try:
                playground = _awaited(gateway, playground["id"])
            except KeyboardInterrupt:
                return _left(playground["id"])
    if as_json:
        print_json(playground)
    else:
        _show(playground)
    return _OUTCOMES.get(playground["state"], ExitCode.CANCELED) if wait else ExitCode.SUCCEEDED


def _input(wanted: Mapping[str, object], ttl: str | None, idle: str | None, env: Sequence[str]) -> Json:
    """What is asked for; what was not given is left to the gateway."""
    model = str(wanted["model"] or wanted["fromJob"] or "playground")
    more = {
        "name": wanted["name"] or model.rpartition("/")[2][:100],
        "ttlSeconds": _seconds(ttl, "--ttl"),
        "idleSeconds": _seconds(idle, "--idle"),
        "env": [_variable(text) for text in env],
        "idempotencyKey": wanted["idempotencyKey"] or str(uuid.uuid4()),
    }
    return {name: value for name, value in {**wanted, **more}.items() if value not in (None, [])}


def _seconds(text: str | None, option: str) -> int | None:
    return int(span(text, option, units=UNITS).total_seconds()) if text else None


def _variable(text: str) -> Json:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserMistake([Problem("INVALID", ("env",), f"--env {text}: give a name and a value, as NAME=VALUE.")])
    return {"name": name, "value": value}


def _awaited(gateway: Gateway, id_: str) -> Json:
    """The playground once it answers or has ended; on the way, what it waits for."""
    err = err_console()
    with err.status("Starting …") if err.is_terminal else nullcontext() as status:
        said = _Said(err, status.update if status else None)
        return asyncio.run(_follow(gateway, id_, said))


async def _follow(gateway: Gateway, id_: str, said: "_Said") -> Json:
    live = Live(gateway, said.note)
    async for change in live.follow(FOLLOW_PLAYGROUND, {"id": id_}, is_last=_is_settled):
        if change["kind"] == "REMOVED":
            break
        if change["playground"]:
            said.now(clean(change["playground"]))
            if _is_settled(change):
                return dict(change["playground"])
    raise no_playground(id_)


def _is_settled(change: Json) -> bool:
    return bool(change["playground"] and change["playground"]["state"] != "STARTING")


class _Said:
    """What a person was told already; a terminal shows the newest in place."""

    def __init__(self, err: Console, show: Callable[[str], None] | None) -> None:
        self._err, self._show, self._last = err, show, ""

    def note(self, text: str) -> None:
        self._err.print(text, style="yellow", soft_wrap=True)

    def now(self, playground: Json) -> None:
        reason = playground["reason"]
        text = f"{playground['state']}: {reason['message']}" if reason else playground["state"]
        if text == self._last:
            return
        self._last = text
        if self._show:
            self._show(text)
        else:
            self._err.print(text, soft_wrap=True)


def _left(id_: str) -> ExitCode:
    err_console().print(
        f"It goes on starting. See `starforge playground list`, or end it with `starforge playground stop {id_}`.",
        soft_wrap=True,
    )
    return ExitCode.INTERRUPTED


def _show(playground: Json) -> None:
    shown, out = clean(playground), out_console()
    if playground["endpoint"]:
        out.print(f"It answers as {shown['servedModelName']} at {shown['endpoint']}", soft_wrap=True)
        out.print(f"Talk to it with `starforge playground chat {shown['id']}`.", soft_wrap=True)
        if playground["expiresAt"]:
            out.print(f"It is stopped at {clock_time(playground['expiresAt'])} if nobody uses it.", soft_wrap=True)
    elif playground["ended"]:
        reason = shown["reason"]
        why = " ".join(filter(None, (reason["message"], reason["advice"]))) if reason else ""
        err_console().print(f"It is {shown['state']}. {why}".rstrip(), soft_wrap=True)
