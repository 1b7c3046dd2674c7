"""Where requests come in: what there is to ask, who may ask it, and how errors are told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cachewarden.errors import (
    CachewardenError,
    LocationLockedError,
    LocationUnavailableError,
    PinsUnreadableError,
    ServiceRefusedError,
    UsageError,
)
from cachewarden.http import Question, Reply, refusal
from cachewarden.logs import get_logger
from cachewarden.service.control.asked import Asked
from cachewarden.service.control.changing import confirm, evict, flush, once, pause, pin, resume, unpin
from cachewarden.service.control.fields import Fields
from cachewarden.service.control.guest import Host
from cachewarden.service.control.looking import entries, explain, history, pins, plan, status
from cachewarden.service.control.place import Place

BASE = "/api/v1"
_BUG = 70
_NO_METHOD = 405
_HTTP: Mapping[type[CachewardenError], int] = {
    UsageError: 400,
    LocationLockedError: 409,
    LocationUnavailableError: 503,
    PinsUnreadableError: 503,
}


@dataclass(frozen=True, slots=True)
class _Route:
    """One thing that can be asked. `changes`: it is worth a line in the log."""

    handle: Callable[[Asked], object]
    root_only: bool = False
    changes: bool = False
    status: int = 200


ROUTES: Mapping[str, Mapping[str, _Route]] = {
    "/status": {"GET": _Route(status)},
    "/entries": {"GET": _Route(entries)},
    "/explain": {"GET": _Route(explain)},
    "/pins": {
        "GET": _Route(pins),
        "POST": _Route(pin, changes=True, status=201),
        "DELETE": _Route(unpin, changes=True),
    },
    "/evict": {"POST": _Route(evict, changes=True)},
    "/plan": {"POST": _Route(plan)},
    "/history": {"GET": _Route(history)},
    "/pause": {"POST": _Route(pause, root_only=True, changes=True)},
    "/resume": {"POST": _Route(resume, root_only=True, changes=True)},
    "/confirm": {"POST": _Route(confirm, root_only=True, changes=True)},
    "/once": {"POST": _Route(once, root_only=True, changes=True)},
    "/flush": {"POST": _Route(flush, root_only=True)},
}


class Desk:
    """Answers questions; any thread may ask."""

    def __init__(self, host: Host) -> None:
        self._place = Place(host)
        self._log = get_logger()

    def close(self) -> None:
        """Answer nothing more that has to look at a disk; whoever waits is told so."""
        self._place.lanes.end()

    def answer(self, question: Question) -> Reply:
        """The reply to one request. Raises nothing."""
        try:
            route = _route(question)
            reply = Reply(route.status, route.handle(self._asked(question)))
        except Exception as error:  # noqa: BLE001  a bug in one answer must not end the service
            return self._refused(question, error)
        if route.changes:
            peer = question.peer
            self._log.info(
                "asked for", method=question.method, request=question.path, uid=peer.uid, pid=peer.pid
            )
        return reply

    def _asked(self, question: Question) -> Asked:
        if question.method == "POST":
            if question.query:
                raise ServiceRefusedError(
                    "what is asked for stands in the body, and nothing in the query", 400
                )
            return Asked(question.peer, Fields(question.body), self._place)
        if question.body is not None:
            raise ServiceRefusedError("this request has no body; what is asked for stands in the query", 400)
        return Asked(question.peer, Fields(question.query), self._place)

    def _refused(self, question: Question, error: Exception) -> Reply:
        if isinstance(error, CachewardenError):
            http = error.http if isinstance(error, ServiceRefusedError) else _http_of(error)
            told = refusal(http, str(error), error.exit_status)
            return replace(told, allow=", ".join(sorted(_methods(question)))) if http == _NO_METHOD else told
        if isinstance(error, OSError):
            return refusal(500, error.strerror or type(error).__name__, 1)
        self._log.error(
            "a request ended by a bug of ours, please report it", request=question.path, exc_info=error
        )
        return refusal(500, "this is a bug; the service's log has more", _BUG)


def _http_of(error: CachewardenError) -> int:
    return next((status for kind, status in _HTTP.items() if isinstance(error, kind)), 500)


def _methods(question: Question) -> Mapping[str, _Route]:
    known = question.path.startswith(BASE)
    return ROUTES.get(question.path.removeprefix(BASE), {}) if known else {}


def _route(question: Question) -> _Route:
    methods = _methods(question)
    if not methods:
        raise ServiceRefusedError(f"there is no such path; all of them begin with {BASE}/", 404)
    route = methods.get(question.method)
    if route is None:
        raise ServiceRefusedError(f"here is {' and '.join(sorted(methods))} only", _NO_METHOD)
    if route.root_only and not question.peer.privileged:
        raise ServiceRefusedError("only root may do this")
    return route
