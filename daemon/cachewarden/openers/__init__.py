"""Live openers: processes that opened an entry and still run, though they may have closed it."""

from cachewarden.openers.book import Recent
from cachewarden.openers.feed import OpenerFeed, Setting
from cachewarden.openers.forms import Form
from cachewarden.openers.location import OpenersOf
from cachewarden.openers.memory import Memory, NoMemory, Row
from cachewarden.openers.samples import ProcSamples
from cachewarden.openers.whole import Openers

__all__ = [
    "Form",
    "Memory",
    "NoMemory",
    "OpenerFeed",
    "Openers",
    "OpenersOf",
    "ProcSamples",
    "Recent",
    "Row",
    "Setting",
]
