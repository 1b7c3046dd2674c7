"""What must survive a restart: entries seen, last use, evictions, states of locations; and pins."""

from cachewarden.ledger.intents import Intent
from cachewarden.ledger.ledger import Ledger, open_ledger
from cachewarden.ledger.mark import ClockMark, read_mark, write_mark
from cachewarden.ledger.pins import Pin, Pins, PinStore, covers
from cachewarden.ledger.service import (
    ServiceState,
    read_service_state,
    remove_service_state,
    signal_service,
    write_service_state,
)
from cachewarden.ledger.values import (
    FOREVER,
    EvictionRow,
    LocationChanges,
    LocationState,
    Opener,
    Passing,
    Record,
    Seen,
    Use,
)

__all__ = [
    "FOREVER",
    "ClockMark",
    "EvictionRow",
    "Intent",
    "Ledger",
    "LocationChanges",
    "LocationState",
    "Opener",
    "Passing",
    "Pin",
    "PinStore",
    "Pins",
    "Record",
    "Seen",
    "ServiceState",
    "Use",
    "covers",
    "open_ledger",
    "read_mark",
    "read_service_state",
    "remove_service_state",
    "signal_service",
    "write_mark",
    "write_service_state",
]
