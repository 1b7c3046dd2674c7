"""What `enforce` says: what would go then, which keys change, and whether it is in force."""

from collections.abc import Iterator, Sequence

from cachewarden.cli.blocks import EMPTY, Block, bad, good, line, warn
from cachewarden.cli.views.plans import location_blocks, totals
from cachewarden.paths import show
from cachewarden.report import PassReport
from cachewarden.service.telling import Reloaded
from cachewarden.settings import Switch

_MOST = 5  # entries by name; `plan` has all of them once it is turned on


def foreseen_blocks(report: PassReport, held: Sequence[str], now_ns: int) -> Iterator[Block]:
    """What the next pass would do. `held`: what holds locations back that no configuration says."""
    for location in report.locations:
        yield from location_blocks(location, now_ns, _MOST)
        yield EMPTY
    yield from totals(report)
    for each in held:
        yield line(warn("Held back: "), each)
    yield EMPTY


def changed_blocks(found: Switch, value: bool) -> Iterator[Block]:
    """Each key that changed, with its place; or that there was nothing to change."""
    if not found.changes:
        state = "enforced" if value else "report only"
        yield line(f"{', '.join(found.names)}: {state} already; nothing was changed")
    for each in found.changes:
        place = show(each.file) if each.line is None else f"{show(each.file)}:{each.line}"
        was = f"was {each.before}" if each.before else "was not set"
        yield line(good("changed "), f"{place}: {each.key} = {'true' if each.value else 'false'} ({was})")


def force_blocks(found: Switch, value: bool, answer: Reloaded | None) -> Iterator[Block]:
    """Whether a running service goes by it."""
    if answer is None:
        yield line("No service is running: it holds from its next start, and for `cachewarden once`.")
    elif answer.how is None:
        yield line(
            warn(f"The service (pid {answer.pid}) was told to read it, and has not answered yet"),
            ": `cachewarden status` says how that went",
        )
    elif not answer.successful:
        yield line(
            bad(f"The service (pid {answer.pid}) could not take it up"),
            f": {answer.how}. It goes by its old configuration until that is mended and it is reloaded.",
        )
    elif others := answer.against(found.names, value):
        yield line(
            bad(f"The service (pid {answer.pid}) does not see it so"),
            f" for {', '.join(others)}: it reads other files, or has other variables, than this command.",
        )
    else:
        what = "enforced" if value else "report only"
        names = ", ".join(found.names)
        yield line(good(f"The service (pid {answer.pid}) has read it"), f": {names}: {what} from now on.")
