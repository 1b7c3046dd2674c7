"""What is no HTTP costs no line in the log: anybody can send it, as often as he likes."""

import logging

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_NONSENSE = (HttpProcessingError, web.RequestPayloadError)


def ignore_nonsense() -> None:
    """Let aiohttp log no request that cannot be read, each with its traceback. Its sender gets an answer."""
    logging.getLogger("aiohttp.server").addFilter(_no_nonsense)  # anew is not twice


def _no_nonsense(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], _NONSENSE)
