#!/usr/bin/env python3
"""The endpoints and flags of `vllm serve` without a model: it says back what it is told. Standard library only."""

import argparse
import itertools
import json
import select
import signal
import socket
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY_MAX = 64 * 1024 * 1024


def options(argv):
    """The flags; what vLLM knows beside them is ignored."""
    usage = "server.py [serve] [flags] MODEL [flags]"
    parser = argparse.ArgumentParser(usage=usage, allow_abbrev=False)
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--tokens-per-second", type=float, default=20.0)
    parser.add_argument("--first-token-seconds", type=float, default=0.0)
    parser.add_argument("--load-seconds", type=float, default=0.0)
    found, rest = parser.parse_known_args(argv)
    rest = rest[1:] if rest[:1] == ["serve"] else rest
    if not rest or rest[0].startswith("-"):
        parser.error("name the model")
    found.model, *ignored = rest
    found.names = found.served_model_name or [found.model]
    if ignored:
        print("ignored:", *ignored, flush=True)
    return found


class Refused(Exception):
    def __init__(self, status, message, kind="BadRequestError"):
        super().__init__(message)
        self.status, self.kind = status, kind

    def body(self):
        error = {"message": str(self), "type": self.kind, "param": None, "code": self.status}
        return {"error": error}


class Gone(Exception):
    """The client has closed its connection."""


class Ask:
    """A completion that is asked for, of either kind."""

    def __init__(self, asked, flags, *, chat):
        self.chat, self.model = chat, asked.get("model") or flags.names[0]
        if self.model not in flags.names:
            raise Refused(404, f"The model `{self.model}` does not exist.", "NotFoundError")
        prompt = _last_message(asked) if chat else _prompt(asked)
        said = prompt.split()
        most = asked.get("max_completion_tokens") or asked.get("max_tokens")
        if most is not None and (not isinstance(most, int) or most < 1):
            raise Refused(400, "max_tokens must be at least 1.")
        source = itertools.cycle(said or ["nothing"]) if asked.get("ignore_eos") and most else iter(said or ["nothing"])
        self.tokens = [word if number == 0 else f" {word}" for number, word in enumerate(itertools.islice(source, most))]
        self.finish = "length" if most is not None and len(self.tokens) == most else "stop"
        self.prompt_tokens = _count(asked) if chat else max(1, len(said))
        rate = asked.get("tokens_per_second", flags.tokens_per_second)
        if not isinstance(rate, (int, float)) or rate < 0:
            raise Refused(400, "tokens_per_second must be a number from 0 on.")
        self.rate = rate
        self.stream = asked.get("stream") is True
        wanted = asked.get("stream_options")
        self.tells_usage = isinstance(wanted, dict) and bool(wanted.get("include_usage"))
        self.id = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())

    def whole(self):
        text = "".join(self.tokens)
        said = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": self.finish}
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._head(kind), "choices": [choice], "usage": self.usage()}

    def chunk(self, number):
        """The event of one token; that of a chat begins with the role, as vLLM's does."""
        text, last = self.tokens[number], number == len(self.tokens) - 1
        said = {"delta": {"content": text}} if self.chat else {"text": text}
        if self.chat and number == 0:
            said["delta"]["role"] = "assistant"
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": self.finish if last else None}
        # For whoever measures the way: a client that does not know it leaves it alone.
        return {**self._head(self._chunk_kind()), "choices": [choice], "sent_at": time.time()}

    def last(self):
        return {**self._head(self._chunk_kind()), "choices": [], "usage": self.usage()}

    def usage(self):
        total = self.prompt_tokens + len(self.tokens)
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": len(self.tokens), "total_tokens": total}

    def _chunk_kind(self):
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _head(self, kind):
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def _last_message(asked):
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise Refused(400, "messages must be a list of messages.")
    return _text(messages[-1].get("content"))


def _text(content):
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _prompt(asked):
    prompt = asked.get("prompt")
    if isinstance(prompt, list) and prompt:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise Refused(400, "prompt must be a text.")
    return prompt


def _count(asked):
    return max(1, sum(len(_text(one.get("content")).split()) for one in asked["messages"]))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    flags = None
    ready_at = 0.0

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path == "/health":
            self._reply(200 if time.monotonic() >= self.ready_at else 503, b"")
        elif path == "/v1/models":
            cards = [{"id": name, "object": "model", "created": 0, "owned_by": "vllm", "root": self.flags.model}
                     for name in self.flags.names]  # fmt: skip
            self._json(200, {"object": "list", "data": cards})
        else:
            self._json(404, {"detail": "Not Found"})

    def do_POST(self):
        path = self.path.partition("?")[0]
        if path not in ("/v1/chat/completions", "/v1/completions"):
            self._json(404, {"detail": "Not Found"})
            return
        try:
            ask = Ask(self._asked(), self.flags, chat=path.endswith("chat/completions"))
            self._stream(ask) if ask.stream else self._answer(ask)
        except Refused as refused:
            self._json(refused.status, refused.body())
        except (Gone, ConnectionError):
            self.close_connection = True
            print("a client went away, and its answer ends", flush=True)

    def _asked(self):
        size = int(self.headers.get("Content-Length") or 0)
        if size > BODY_MAX:
            raise Refused(413, "The body is too large.")
        try:
            asked = json.loads(self.rfile.read(size))
        except ValueError as error:
            raise Refused(400, f"The body is not JSON: {error}") from error
        if not isinstance(asked, dict):
            raise Refused(400, "The body is not an object.")
        return asked

    def _answer(self, ask):
        self._pace(ask, lambda _: None)
        self._json(200, ask.whole())

    def _stream(self, ask):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._pace(ask, lambda number: self._event(ask.chunk(number)))
        if ask.tells_usage:
            self._event(ask.last())
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _pace(self, ask, tell):
        """Calls `tell` for each token when it is due; Gone if the client is."""
        due = time.monotonic() + self.flags.first_token_seconds
        for number in range(len(ask.tokens)):
            self._wait(due)
            tell(number)
            due += 1 / ask.rate if ask.rate else 0

    def _wait(self, due):
        """Until it is due, or the client has gone: its socket is readable then, with nothing to read."""
        while True:
            pause = max(0.0, due - time.monotonic())
            readable, _, _ = select.select([self.connection], [], [], pause)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise Gone
            if readable:
                time.sleep(pause)  # it has sent its next request already, which waits for this one
                return
            if not pause or time.monotonic() >= due:
                return

    def _event(self, value):
        self._chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _chunk(self, piece):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def _json(self, status, value):
        self._reply(status, json.dumps(value).encode(), "application/json")

    def _reply(self, status, body, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, form, *args):
        if "/health" not in str(args[0] if args else ""):
            print(f"{self.client_address[0]} {form % args}", flush=True)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main(argv):
    flags = options(argv)
    Handler.flags, Handler.ready_at = flags, time.monotonic() + flags.load_seconds
    Handler.disable_nagle_algorithm = True
    server = Server((flags.host, flags.port), Handler)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"serving {flags.model} as {', '.join(flags.names)} on {flags.host}:{server.server_port}", flush=True)
    server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main(sys.argv[1:])
