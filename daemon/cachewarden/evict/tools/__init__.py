"""Caches that only their own tool may prune: its command, run as the owner of the cache.

`prune` is the face. Nothing in such a cache is ever removed by our own hand.
"""

from cachewarden.evict.tools.account import Account, RefusedError, account_of
from cachewarden.evict.tools.child import Ran
from cachewarden.evict.tools.prune import ToolsCache, prune

__all__ = ["Account", "Ran", "RefusedError", "ToolsCache", "account_of", "prune"]
