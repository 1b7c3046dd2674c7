"""Pure decisions of cachewarden: which cache entries go, which stay, and why.

Values in, plan out. Nothing here reads a disk, a clock or a process table, logs, or imports anything
but standard library values; a test enforces it. The daemon measures, calls `make_plan`, and applies.
"""
