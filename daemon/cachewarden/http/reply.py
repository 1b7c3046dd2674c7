"""What the control socket says: an HTTP status and a JSON value."""

import json
from dataclasses import dataclass

from aiohttp import web

_HEADERS = {
    "Content-Type": "application/json",
    "Server": "cachewarden",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What to say: an HTTP status and a JSON value. `allow`: the methods that there are, with 405."""

    status: int
    document: object
    allow: str | None = None


def refusal(status: int, text: str, exit_status: int = 2) -> Reply:
    """An error. `exit_status` is what a command ends with that is told so."""
    return Reply(status, {"error": text, "status": exit_status})


def encoded(reply: Reply) -> web.Response:
    """The reply as it goes over the socket."""
    allow = {"Allow": reply.allow} if reply.allow is not None else {}
    text = json.dumps(reply.document).encode()
    return web.Response(body=text, status=reply.status, headers=_HEADERS | allow)
