"""Names of users."""

import pwd
from collections.abc import Iterable, Mapping


def user_name(uid: int) -> str:
    """A user's name, or the number where there is none. May ask a directory server, and wait for it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def user_names(uids: Iterable[int | None]) -> Mapping[int | None, str]:
    """The names of users, each asked for once. None, an owner that is not known, has none."""
    return {uid: user_name(uid) for uid in set(uids) if uid is not None}
