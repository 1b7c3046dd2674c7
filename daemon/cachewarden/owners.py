"""Names of users."""

import pwd


def user_name(uid: int) -> str:
    """A user's name, or the number where there is none. May ask a directory server, and wait for it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
