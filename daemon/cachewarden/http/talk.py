"""One connection at the control socket, as aiohttp handles it."""

import asyncio
from typing import Any

from aiohttp import web

from cachewarden.http.reply import encoded, refusal

# A path of 4,096 bytes, each of them six characters in a query (`%5Cxff`), and what stands around it.
_LONGEST_LINE = 32 << 10
_NO_LOG: Any = None  # what aiohttp takes, though its types do not say so
_BUG = 70


class Talk(web.RequestHandler):
    """Answers what is no HTTP in the shape that all errors have."""

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=_NO_LOG,
            keepalive_timeout=1,
            max_line_size=_LONGEST_LINE,
            auto_decompress=False,  # a body is small, and what is compressed is no JSON
        )

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Called where a request cannot be read, and where our handler raised: a bug, which is logged."""
        super().handle_error(request, status, exc, message)
        if status < 500:
            reply = refusal(status, "this is no HTTP request, or its head is too long")
        else:
            reply = refusal(status, "this is a bug; the service's log has more", _BUG)
        response = encoded(reply)
        response.force_close()
        return response
