"""`starforge playground chat`."""

import os
import sys
from contextlib import closing, suppress

from starforge.cli.answers import Json
from starforge.cli.chatting import Conversation
from starforge.cli.consoles import err_console
from starforge.cli.documents import PLAYGROUND
from starforge.cli.exits import ExitCode, tell
from starforge.cli.gateway import Gateway
from starforge.cli.verbs.playground import no_playground
from starforge.cli.words import clean
from starforge.domain.errors import NotFound, Problem, StarForgeError, UserMistake

_ANSWERS = frozenset({"READY", "EXPIRING"})


def run(id_: str, *, message: str | None, system: str | None, options: Json) -> ExitCode:
    with Gateway.from_settings(os.environ) as gateway:
        playground = _open(gateway, id_)
        talk = Conversation(gateway, id_, playground["servedModelName"], options)
        if system:
            talk.messages.append({"role": "system", "content": system})
        if message is not None:
            return _say(talk, message)
        return _talk(talk)


def _open(gateway: Gateway, id_: str) -> Json:
    playground: Json | None = gateway.ask(PLAYGROUND, id=id_)["playground"]
    if playground is None:
        raise no_playground(id_)
    if playground["state"] not in _ANSWERS:
        reason = playground["reason"]
        why = f" {reason['message']}" if reason else ""
        raise UserMistake([Problem("WRONG_STATE", (), f"{id_} is {playground['state']} and does not answer.{why}")])
    return playground


def _talk(talk: Conversation) -> ExitCode:
    """Until the input ends. An answer that fails is told, and the talk goes on unless there is nobody to talk to."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        with suppress(ImportError):
            import readline  # noqa: F401 - input() has a history and keys to edit with then
        err_console().print(f"{clean(talk.model)}: Ctrl-C ends an answer, Ctrl-D ends the talk.", style="dim")
    while True:
        try:
            text = input("> " if is_terminal else "").strip()
        except EOFError:
            sys.stdout.write("\n" if is_terminal else "")
            return ExitCode.SUCCEEDED
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            continue
        if not text:
            continue
        try:
            _say(talk, text)
        except (NotFound, UserMistake):
            raise
        except StarForgeError as error:
            if not is_terminal:
                raise
            tell(error)


def _say(talk: Conversation, text: str) -> ExitCode:
    """The answer on stdout as it comes; Ctrl-C ends it, which the server is told."""
    out = sys.stdout
    try:
        with closing(talk.ask(text)) as pieces:
            for piece in pieces:
                out.write(clean(piece))
                out.flush()
    except KeyboardInterrupt:
        out.write(" …\n")
        return ExitCode.INTERRUPTED
    except StarForgeError:
        out.write("\n")
        out.flush()
        raise
    out.write("\n")
    out.flush()
    return ExitCode.SUCCEEDED
