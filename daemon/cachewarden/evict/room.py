"""How many descriptors this process may spend on victims."""

import os
import resource

# For everything else that the service has open or opens meanwhile: sockets, ledger, looks at /proc.
_OTHERS = 128


def raise_descriptor_limit() -> None:
    """Raise the soft limit on open files to the hard one: RLIMIT_NOFILE, getrlimit(2)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_room() -> int:
    """Half of what is left: one batch is being unlinked while the next one is open. At least 16."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft if soft != resource.RLIM_INFINITY else 1 << 20
    return max(16, (limit - len(os.listdir("/proc/self/fd")) - _OTHERS) // 2)
