"""All errors that cachewarden raises on purpose. Anything else that escapes is a bug of ours.

Errors of single entries are not here: a pass goes on, so they are values (`report.Failed`). Each
class knows the exit status that a command ends with; `cli` reads it.
"""


class CachewardenError(Exception):
    """Base class; its text is shown to the user as it is."""

    exit_status = 1


class ConfigurationError(CachewardenError):
    """The configuration is wrong. Nothing was scanned. One line per problem."""

    exit_status = 2

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UsageError(CachewardenError):
    """What was asked for makes no sense: no such location, an unreadable plan, a bad duration."""

    exit_status = 2


class LedgerTooNewError(CachewardenError):
    """The ledger was written by a newer version; it is left alone."""

    exit_status = 2


class PinsUnreadableError(CachewardenError):
    """Neither the file with the pins nor its copy can be read: everything counts as pinned."""


class NoServiceError(CachewardenError):
    """An unprivileged command needs the service's socket, and there is none to ask."""

    exit_status = 2


class ServiceRefusedError(CachewardenError):
    """The service does not do what was asked over its socket.

    `http` is the HTTP status of its answer, `exit_status` what a command ends with that gets it.
    """

    def __init__(self, text: str, http: int = 403, exit_status: int = 2) -> None:
        super().__init__(text)
        self.http = http
        self.exit_status = exit_status


class LocationLockedError(CachewardenError):
    """Another pass holds the lock of a location for longer than `--wait`; the text names the holder."""

    exit_status = 3


class LocationUnavailableError(CachewardenError):
    """A location is missing, is not what it must be, or its filesystem does not answer."""


class LocationAbsentError(LocationUnavailableError):
    """Nothing has the path of a location: somebody deleted his cache, or has made none yet."""


class LayoutError(CachewardenError):
    """A configured layout's name is not known, or its shape is not what the location has."""

    exit_status = 2


class ListenError(CachewardenError):
    """The configured HTTP address cannot be bound; the text names it. It may be free again soon."""
