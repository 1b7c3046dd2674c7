"""How full a location is, against its limit and its target."""

from cachewarden.cli.blocks import Bar, Bit, Content, Style, line
from cachewarden.cli.blocks import Line as LineBlock
from cachewarden.cli.words import percent, size
from cachewarden.paths import show


def heading(name: str, path: bytes, layout: str = "") -> LineBlock:
    """The line that begins a location's part: its name, its root, its layout."""
    shown = f"  {show(path)}" + (f"  (layout {layout})" if layout else "")
    return line(Bit(name, Style.STRONG), shown)


def style_of(used: int, limit: int | None) -> Style:
    """Red over the limit, yellow close to it."""
    if limit is None:
        return Style.PLAIN
    return Style.BAD if used > limit else Style.WARN if used * 10 > limit * 9 else Style.GOOD


def bar(used: int, limit: int | None) -> Content:
    """A bar on a terminal, where there is a limit."""
    return Bar(used / limit, style_of(used, limit)) if limit else ""


def usage(used: int, limit: int | None, target: int | None) -> LineBlock:
    """`212 GiB of 200 GiB (106 %), target 180 GiB`."""
    if limit is None:
        return line(f"{size(used)} used, no limit on the size", indent=1)
    share = Bit(f"{size(used)} of {size(limit)} ({percent(used, limit)})", style_of(used, limit))
    goal = f", target {size(target)}" if target is not None and used > limit else ""
    return line(bar(used, limit), share, goal, indent=1)
