"""What `status` says: the service, and one row for each location."""

from collections.abc import Iterator

from cachewarden.cli.blocks import EMPTY, Block, Column, Content, Table, bad, dim, good, line, strong, warn
from cachewarden.cli.views.passes import outcome_bit
from cachewarden.cli.views.usage import bar
from cachewarden.cli.words import OUTCOME, entries, number, percent, relative, size, until
from cachewarden.ledger import ServiceState
from cachewarden.paths import show
from cachewarden.service.status import LocationStatus, Status
from cachewarden_policies.reasons import Outcome

_COLUMNS = (
    Column("LOCATION"),
    Column("PATH", wraps=True),
    Column("USED", right=True),
    Column("LIMIT", right=True),
    Column("FULL", right=True),
    Column("", needs=130),
    Column("ENTRIES", right=True, needs=110),
    Column("STATE"),
    Column("LAST PASS", right=True, needs=100),
    Column("NEXT PASS", right=True, needs=120),
)


def status_blocks(status: Status, now_ns: int) -> Iterator[Block]:
    """The whole page."""
    yield _service(status.service, now_ns)
    for sentence in status.service.blinded if status.service is not None else ():
        yield line(bad("Nothing is evicted: "), sentence)
    yield EMPTY
    if not status.locations:
        yield line("No location is configured, or none matches: nothing is watched.")
    else:
        yield Table(_COLUMNS, [_row(each, now_ns) for each in status.locations])
    notes = [note for each in status.locations for note in _notes(each, now_ns)]
    notes += [line(warn("Refused: "), each) for each in status.refused]
    notes += [line(warn("Warning: "), each) for each in status.warnings]
    if notes:
        yield EMPTY
        yield from notes


def _service(service: ServiceState | None, now_ns: int) -> Block:
    if service is None:
        return line(
            warn("The service is not running"),
            ": nothing goes but by `cachewarden once`, `apply` and `evict`.",
        )
    started = relative(service.since_ns, now_ns)
    running = good("The service is running"), f" (pid {service.pid}, started {started})."
    if service.reload in ("", "ok"):
        return line(*running)
    return line(*running, warn(" The files are not in force: "), f"the last reload {service.reload}")


def _row(each: LocationStatus, now_ns: int) -> tuple[Content, ...]:
    state, used = each.state, each.state.bytes
    limit = state.limit_bytes
    full = percent(used, limit) if used is not None and limit else "-"
    lower_bound = "≥ " if state.usage_complete is False and each.available else ""
    return (
        strong(each.spec.name),
        show(each.spec.path),
        lower_bound + size(used),
        size(limit),
        full,
        bar(used, limit) if used is not None else "",
        number(state.entries),
        _state(each),
        relative(state.last_pass_ns, now_ns),
        relative(each.next_pass_ns, now_ns) if each.next_pass_ns is not None else "-",
    )


def _state(each: LocationStatus) -> Content:
    if not each.available:
        return bad(OUTCOME[Outcome.UNAVAILABLE]) if _failing(each) else warn("not there")
    if each.paused_until_ns is not None:
        return warn("paused")
    if each.state.outcome is None:
        return dim("no pass yet")
    if each.state.outcome is Outcome.SHORT and not each.spec.enforce:
        return warn("report only")  # nothing was tried
    return outcome_bit(each.state.outcome, OUTCOME[each.state.outcome])


def _failing(each: LocationStatus) -> bool:
    """Whether it does not answer. A path that is only missing is no failure."""
    return each.state.outcome in (Outcome.UNAVAILABLE, Outcome.FAILED)


def _notes(each: LocationStatus, now_ns: int) -> Iterator[Block]:
    state = each.state
    of = f"{each.spec.name} ({show(each.spec.path)}): "
    if not each.available:
        if _failing(each):
            yield line(of, bad("unavailable"), f": {state.detail}" if state.detail else "")
        else:
            yield line(of, "it is not there; it is taken up when it appears")
    elif state.outcome is Outcome.FAILED or (state.outcome is Outcome.SHORT and each.spec.enforce):
        yield line(of, bad(state.outcome.sentence), f": {state.detail}" if state.detail else "")
    if state.waiting_since_ns is not None and not state.confirmed(now_ns):
        yield line(
            of,
            warn("waits for confirmation"),
            f" that {entries(state.waiting_entries or 0)}, {size(state.waiting_bytes or 0)} may go, since "
            f"{relative(state.waiting_since_ns, now_ns)}: cachewarden confirm {each.spec.name}",
        )
    if state.confirmed(now_ns):
        yield line(of, f"confirmed {until(state.confirmed_until_ns, now_ns)}: max_share does not apply")
    if each.paused_until_ns is not None:
        yield line(of, warn("paused"), f" {until(each.paused_until_ns, now_ns)}: nothing goes")
    if not each.spec.enforce:
        yield line(
            of,
            "report only: nothing goes while enforce = false stands there; "
            f"`cachewarden enforce {each.spec.name}` turns it on",
        )
    if state.usage_complete is False and each.available:
        yield line(of, warn("parts of it cannot be read"), ": its usage is a lower bound")
    if state.over_limit_since_ns is not None:
        yield line(of, f"over its limit since {relative(state.over_limit_since_ns, now_ns)}")
