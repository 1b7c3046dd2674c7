"""Which directories can be a location at all. Says no to what nobody means: `/`, homes, the system."""

import os
import pwd

from cachewarden.paths import show

# Not locations themselves; a cache below one of these is fine.
_SYSTEM = frozenset(
    b"/home /root /run /run/user /var /var/lib /var/cache /var/tmp /var/log /var/spool /var/mail /var/opt "
    b"/var/run /tmp /opt /srv /mnt /media /snap /lost+found /nix /nix/store /gnu /gnu/store".split()
)
# Nor anything below these: the system's own files.
_SYSTEM_TREES = tuple(b"/etc /usr /boot /proc /sys /dev /bin /sbin /lib /lib32 /lib64 /libx32 /efi".split())


def unfit(path: bytes, homes: frozenset[bytes]) -> str | None:
    """Why `path` (absolute, normalised) cannot be a location, or None."""
    if path == b"/":
        return "is the root of all files"
    if path in homes:
        return "is a home directory itself"
    if path in _SYSTEM or path in _SYSTEM_TREES:
        return "is a system directory"
    if any(path.startswith(tree + b"/") for tree in _SYSTEM_TREES) and not _in_account(path, homes):
        return "lies in a system directory"
    inside = sorted(home for home in homes if home.startswith(path + b"/"))
    if inside:
        return f"contains the home directory {show(inside[0])}"
    return None


def _in_account(path: bytes, homes: frozenset[bytes]) -> bool:
    """Whether `path` lies in the home of a service's account: Ollama's packages keep models in
    /usr/share/ollama. Three levels, because accounts of old have /usr/sbin or /dev for a home."""
    return any(home.count(b"/") >= 3 and path.startswith(home + b"/") for home in homes)


def account_homes(home: bytes | None) -> frozenset[bytes]:
    """All homes of the account database, and `home` ($HOME), as they are written. Looks at no disk."""
    named = {os.fsencode(each.pw_dir) for each in pwd.getpwall()} | ({home} if home else set())
    return frozenset(os.path.normpath(each) for each in named if each.startswith(b"/")) - {
        b"/",
        b"/nonexistent",
    }


def home_directories(home: bytes | None) -> frozenset[bytes]:
    """The same, and also as they are called without links; may block on a filesystem that is dead.

    Only the directories around homes are looked at: looking at a home would mount it where an
    automounter keeps them.
    """
    homes = account_homes(home)
    around = {each: os.path.realpath(each) for each in {os.path.dirname(home) for home in homes}}
    return homes | {os.path.join(around[os.path.dirname(each)], os.path.basename(each)) for each in homes}


def is_home_of(path: bytes, uid: int) -> bool:
    """Whether `path` is the home of `uid`: directories of accounts may not list them (LDAP)."""
    try:
        return os.path.normpath(os.fsencode(pwd.getpwuid(uid).pw_dir)) == path
    except KeyError:
        return False
