"""structlog, set up once for the whole process, the standard library's loggers included."""

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, MutableMapping
from typing import Any, Literal, TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from cachewarden.logs.clean import clean, one_line
from cachewarden.logs.journal import Journal
from cachewarden.logs.sink import Sink, is_journal

Logger = FilteringBoundLogger
LogFormat = Literal["auto", "text", "json"]
_Event = MutableMapping[str, Any]
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


def configure(log_format: LogFormat = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Set up logging; may be called again, after a reload.

    auto and text: key=value, with colours on a terminal for auto; the journal gets the fields besides.
    json: one object per line.
    `stream` is standard error unless given. Raises ValueError for a level that is none.
    """
    if level not in _LEVELS:
        raise ValueError(f"not a log level: {level}; the levels are {', '.join(_LEVELS)}")
    stream = sys.stderr if stream is None else stream
    structlog.configure(
        processors=_processors(log_format, stream),
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=_factory(log_format, stream),
        # Not cached: loggers are made when modules are loaded, and must follow a reload.
        cache_logger_on_first_use=False,
    )
    _adopt_standard_loggers()


def get_logger() -> Logger:
    """The logger. It may be taken before `configure`, and follows it; lines may not be logged before."""
    return cast("Logger", structlog.get_logger())


def _processors(log_format: LogFormat, stream: TextIO) -> list[Processor]:
    journal = is_journal(stream, os.environ)
    common: list[Processor] = [structlog.processors.add_log_level]
    if not journal:  # the journal has its own, and more exact
        common.append(structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"))
    if log_format == "auto" and stream.isatty():
        return [*common, _traceback_for_people, _clean, _console]
    common += [_traceback_in_one_value, _clean]
    if log_format == "json":
        return [*common, _json]
    return [*common, _for_journal if journal else _key_values]


def _clean(_: object, __: str, event: _Event) -> _Event:
    trace = event.pop("exception", None)
    cleaned = {one_line(key): clean(value) for key, value in event.items()}
    if trace is not None:
        # Of its lines, those that we made are kept, for a terminal; control characters are not.
        cleaned["exception"] = "\n".join(one_line(line) for line in str(trace).split("\n"))
    return cleaned


def _exception_text(event: _Event) -> str | None:
    found = event.pop("exc_info", None)
    if found is True:
        found = sys.exc_info()
    if isinstance(found, BaseException):
        found = (type(found), found, found.__traceback__)
    if not isinstance(found, tuple) or found[0] is None:
        return None
    return "".join(traceback.format_exception(*found)).rstrip("\n")


def _traceback_for_people(_: object, __: str, event: _Event) -> _Event:
    text = _exception_text(event)
    return event if text is None else {**event, "exception": text}


def _traceback_in_one_value(_: object, __: str, event: _Event) -> _Event:
    text = _exception_text(event)
    return event if text is None else {**event, "traceback": text}


def _ordered(event: _Event) -> dict[str, Any]:
    first = {key: event[key] for key in ("time", "level", "event") if key in event}
    return first | dict(event)


def _json(_: object, __: str, event: _Event) -> str:
    return json.dumps(_ordered(event), ensure_ascii=False)


def _key_values(_: object, __: str, event: _Event) -> str:
    return " ".join(f"{_key(key)}={_quoted(value)}" for key, value in _ordered(event).items())


def _key(key: str) -> str:
    return "".join("_" if char in ' "=' else char for char in key)


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text and not any(char in text for char in ' ="'):
        return text
    # In quotes a backslash escapes, outside it does not: an escaped path can be copied as it is.
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _for_journal(_: object, __: str, event: _Event) -> tuple[tuple[str, dict[str, str]], dict[str, Any]]:
    """The arguments of `Journal.write`: what people read begins with the event, and needs no level."""
    rest = {key: value for key, value in event.items() if key not in ("event", "level")}
    text = " ".join([str(event.get("event", "")), *(f"{_key(k)}={_quoted(v)}" for k, v in rest.items())])
    return (text, {key: _bare(value) for key, value in event.items()}), {}


def _bare(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _quoted(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_pretty = structlog.dev.ConsoleRenderer(colors=True, timestamp_key="time", sort_keys=False)


def _console(logger: Any, method: str, event: _Event) -> str:
    return str(_pretty(logger, method, event))


class _Writer:
    """What structlog hands a rendered event to: one method for each level."""

    def __init__(self, write: Callable[..., None]) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = self.exception = write
        self.msg = self.warn = self.fatal = write


def _factory(log_format: LogFormat, stream: TextIO) -> Callable[..., _Writer]:
    sink = Sink(stream)
    write: Callable[..., None] = sink.write
    if log_format != "json" and is_journal(stream, os.environ):
        write = Journal(sink).write
    return lambda *_: _Writer(write)


class _Adopting(logging.Handler):
    """Passes on what libraries log through the standard library, as events of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower()
        logger = get_logger().bind(library=record.name)
        try:
            text = record.getMessage()
        except (TypeError, ValueError):  # arguments that do not fit the text: the library's mistake
            text = str(record.msg)
        getattr(logger, level if level in _LEVELS else "warning")(text, exc_info=record.exc_info)


def _adopt_standard_loggers() -> None:
    root = logging.getLogger()
    if not any(isinstance(handler, _Adopting) for handler in root.handlers):
        root.addHandler(_Adopting())
    # Libraries tell at lower levels how they work, which is nothing to the reader of our log.
    root.setLevel(logging.WARNING)
