"""One line per event: key=value for the journal, colours on a terminal, or JSON; and the audit file."""

from cachewarden.logs.audit import AuditFile
from cachewarden.logs.changes import Changes
from cachewarden.logs.setup import LogFormat, Logger, configure, get_logger

__all__ = ["AuditFile", "Changes", "LogFormat", "Logger", "configure", "get_logger"]
