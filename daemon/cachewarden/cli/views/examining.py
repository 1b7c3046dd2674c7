"""What `doctor` says: one table for the machine, one for each filesystem, and the sum.

What to do stands below what it concerns, and not beside it: most lines have nothing to do, and a column for
it would take half of a narrow terminal from them.
"""

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
)
_STYLES = {Grade.GOOD: good, Grade.WEAKER: warn, Grade.NOTE: dim}
_NAMED = 5


def examination_blocks(found: Examination) -> Iterator[Block]:
    """The whole page."""
    yield line(strong("This machine"))
    yield _table(found.machine)
    for each in found.filesystems:
        yield EMPTY
        kind = f" ({show(each.type)})" if each.type else ""
        yield line(strong(show(each.point) or "A filesystem"), f"{kind}: {_names(each.locations)}")
        yield _table(each.findings)
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


def _table(findings: Sequence[Finding]) -> Table:
    return Table(_COLUMNS, [row for each in findings for row in _rows(each)], indent=1)


def _rows(finding: Finding) -> Iterator[tuple[Content, ...]]:
    style = _STYLES[finding.grade]
    yield finding.check, style(str(finding.grade)), finding.means
    if finding.advice:
        yield "", "", strong(f"Do: {finding.advice}")


def _names(locations: Sequence[LocationSpec]) -> str:
    shown = ", ".join(f"{each.name} at {show(each.path)}" for each in locations[:_NAMED])
    more = len(locations) - _NAMED
    return f"{shown} and {plural(more, 'more location', 'more locations')}" if more > 0 else shown


def _sum(found: Examination) -> Block:
    weak = [_where(each.check) for each in _weaker(found.machine)]
    weak += [
        _where(each.check, show(filesystem.point))
        for filesystem in found.filesystems
        for each in _weaker(filesystem.findings)
    ]
    weak += [_where(each.check, spec.name) for spec, each in found.unavailable]
    if not weak:
        return line(good("Everything is guaranteed"), " that docs/safety.md promises.")
    return line(
        warn(f"{len(weak)} of {len(found.all)} are weaker"),
        f" than they could be: {', '.join(weak)}. The rest is as promised.",
    )


def _weaker(findings: Sequence[Finding]) -> Iterator[Finding]:
    return (each for each in findings if each.grade is Grade.WEAKER)


def _where(check: str, place: str = "") -> str:
    return f"{check} ({place})" if place else check
