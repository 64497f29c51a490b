"""The page that a browser gets at the GraphQL address: a console that loads nothing from anywhere else."""

import re
import secrets
from functools import cache
from importlib import resources

from starlette.responses import HTMLResponse

_NONCE = "{{nonce}}"
_HOST = re.compile(r"[\w.\-\[\]:]+")


def console_page(host: str) -> HTMLResponse:
    """`host` is what the browser calls us, with the port: not every browser takes WebSockets for part of 'self'."""
    sockets = f"ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; img-src data:; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        f"connect-src 'self' {sockets}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "cache-control": "no-store", "vary": "accept"}
    return HTMLResponse(_page().replace(_NONCE, nonce), headers=headers)


@cache
def _page() -> str:
    return resources.files(__package__).joinpath("console.html").read_text(encoding="utf-8")
