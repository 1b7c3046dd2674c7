"""What `doctor` says: one table for the machine, one for each filesystem, and the sum."""

from collections.abc import Iterator, Sequence

from cachewarden.cli.blocks import EMPTY, Block, Column, Content, Table, bad, dim, good, line, strong, warn
from cachewarden.cli.words import plural
from cachewarden.doctor import Examination, Finding, Grade
from cachewarden.paths import show
from cachewarden.spec import LocationSpec

_COLUMNS = (
    Column("TRIED"),
    Column("RESULT"),
    Column("WHAT IT MEANS", wraps=True),
    Column("WHAT TO DO", wraps=True),
)
_STYLES = {Grade.GOOD: good, Grade.WEAKER: warn, Grade.NOTE: dim}
_NAMED = 5


def examination_blocks(found: Examination) -> Iterator[Block]:
    """The whole page."""
    yield line(strong("This machine"))
    yield Table(_COLUMNS, [_row(each) for each in found.machine], indent=1)
    for each in found.filesystems:
        yield EMPTY
        kind = f" ({show(each.type)})" if each.type else ""
        yield line(strong(show(each.point) or "A filesystem"), f"{kind}: {_names(each.locations)}")
        yield Table(_COLUMNS, [_row(finding) for finding in each.findings], indent=1)
    notes = [line(bad("Unavailable: "), f"{spec.name}: {each.means}") for spec, each in found.unavailable]
    notes += [line(f"{each.name}: {show(each.path)} is not there yet") for each in found.missing]
    notes += [
        line(warn("Refused: "), f"{each.name}: {show(each.path)}: {each.reason}") for each in found.refused
    ]
    if not found.filesystems:
        notes.append(line("There is no location to try anything in."))
    yield from (EMPTY, *notes) if notes else ()
    yield EMPTY
    yield _sum(found)


def _row(finding: Finding) -> tuple[Content, ...]:
    style = _STYLES[finding.grade]
    return finding.check, style(str(finding.grade)), finding.means, finding.advice


def _names(locations: Sequence[LocationSpec]) -> str:
    shown = ", ".join(f"{each.name} at {show(each.path)}" for each in locations[:_NAMED])
    more = len(locations) - _NAMED
    return f"{shown} and {plural(more, 'more location', 'more locations')}" if more > 0 else shown


def _sum(found: Examination) -> Block:
    weak = sum(each.grade is Grade.WEAKER for each in found.all)
    if not weak:
        return line(good("Everything is guaranteed"), " that docs/safety.md promises.")
    return line(
        warn(f"{weak} of {len(found.all)} are weaker"), " than they could be; the rest is as promised."
    )
