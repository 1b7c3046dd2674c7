"""Live openers: processes that opened an entry and still run, though they may have closed it."""

from cachewarden.openers.feed import OpenerFeed
from cachewarden.openers.forms import Form
from cachewarden.openers.lastuses import News, Passing, Recent
from cachewarden.openers.location import OpenersOf
from cachewarden.openers.memory import Memory, NoMemory, Row
from cachewarden.openers.samples import ProcSamples
from cachewarden.openers.setting import Setting
from cachewarden.openers.whole import Openers

__all__ = [
    "Form",
    "Memory",
    "News",
    "NoMemory",
    "OpenerFeed",
    "Openers",
    "OpenersOf",
    "Passing",
    "ProcSamples",
    "Recent",
    "Row",
    "Setting",
]
