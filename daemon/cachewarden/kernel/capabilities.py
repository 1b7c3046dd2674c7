"""Which capabilities this process has: capabilities(7), numbers of linux/capability.h."""

from typing import Final

NUMBERS: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_FOWNER": 3,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_LEASE": 28,
}


def effective() -> frozenset[str]:
    """Those of `NUMBERS` that are in force for the calling thread. Raises OSError without /proc."""
    held = 0
    with open("/proc/thread-self/status", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("CapEff:"):
                held = int(line.split()[1], 16)
    return frozenset(name for name, number in NUMBERS.items() if held >> number & 1)
