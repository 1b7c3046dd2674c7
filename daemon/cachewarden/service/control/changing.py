"""Requests that change something. Each takes its fields first, and refuses what is left of them."""

from cachewarden.errors import LocationUnavailableError, ServiceRefusedError, UsageError
from cachewarden.ledger import Pin
from cachewarden.paths import show
from cachewarden.report import PassReport, iso
from cachewarden.service.control.asked import Asked
from cachewarden.service.control.guest import Guest
from cachewarden.service.control.looking import joined, plan_json
from cachewarden.service.control.pinning import check_pin, granted_until, pin_json, pin_path
from cachewarden.service.control.seeing import own_report
from cachewarden_policies.policy import HOUR, SECOND
from cachewarden_policies.reasons import Outcome

_WAIT_NS = 30 * SECOND
_MOST_WAIT_NS = 600 * SECOND
_PASS_SECONDS = 3600.0


def pin(asked: Asked) -> object:
    """POST /pins."""
    path, for_ns = asked.fields.path(), asked.fields.duration("for")
    reason = asked.fields.words("reason")
    asked.fields.end()
    spec, peer = asked.place.location_of(path), asked.peer
    guest = asked.place.guest()
    now_ns = guest.clock.wall_ns()
    if asked.uid is None:
        until_ns = None if for_ns is None else now_ns + for_ns
        made = Pin(path, now_ns, until_ns, reason, peer.uid)
        guest.pins.add(made, now_ns)
        return pin_json(made)
    until_ns = granted_until(spec, for_ns, now_ns)

    def ask(inside: Guest) -> Pin:
        # In the lane, so that two pins of one user are not both the last that is within the size.
        with inside.surveyed(spec) as survey:
            made = Pin(pin_path(survey, path), now_ns, until_ns, reason, peer.uid)
            check_pin(survey, made, peer, inside.pins, now_ns)
        inside.pins.add(made, now_ns)
        return made

    return pin_json(asked.place.at(spec, ask))


def unpin(asked: Asked) -> object:
    """DELETE /pins: root takes back anybody's, a user his own."""
    path = asked.fields.path()
    asked.fields.end()
    guest = asked.place.guest()
    if not guest.pins.remove(path, guest.clock.wall_ns(), asked.uid):
        raise ServiceRefusedError(f"{show(path)}: no pin of yours is set on this path", 404)
    return {"path": show(path)}


def evict(asked: Asked) -> object:
    """POST /evict: as `evict --json`, what the caller owns; hard guards hold whoever asks."""
    path, wait_ns = asked.fields.path(), _wait(asked)
    asked.fields.end()
    spec, uid = asked.place.location_of(path), asked.uid

    def ask(guest: Guest) -> PassReport:
        try:
            report = guest.evict_for(spec, path, uid, wait_ns)
        except (UsageError, ServiceRefusedError) as error:
            text = str(error) if uid is None else f"{show(path)}: no entry of yours is there"
            raise ServiceRefusedError(text, 404) from None
        return report if uid is None else own_report(report, guest.owners, uid)

    return asked.place.at(spec, ask, _PASS_SECONDS).to_json()


def once(asked: Asked) -> object:
    """POST /once: as `once --json`."""
    only, free = asked.fields.text("location"), asked.fields.size("free")
    confirmed, wait_ns = asked.fields.flag("yes"), _wait(asked)
    asked.fields.end()

    def ask(guest: Guest) -> PassReport:
        return guest.once(only=only, free=free, confirmed=confirmed, wait_ns=wait_ns)

    report = joined(asked.place.each(only, ask, _PASS_SECONDS), None)
    if report.locked:
        raise ServiceRefusedError("; ".join(report.locked), 409, 3)
    return report.to_json()


def pause(asked: Asked) -> object:
    """POST /pause: until when; null is until `resume`."""
    only, for_ns = asked.fields.text("location"), asked.fields.duration("for")
    asked.fields.end()
    guest = asked.place.knowing(only)
    return {"location": only, "until": iso(guest.pause(only, for_ns=for_ns))}


def resume(asked: Asked) -> object:
    """POST /resume."""
    only = asked.fields.text("location")
    asked.fields.end()
    asked.place.knowing(only).resume(only)
    _wake(asked, only)
    return {"location": only}


def confirm(asked: Asked) -> object:
    """POST /confirm: what may go now that had to wait, and until when. With `dry_run`, only what would.

    Nobody confirms what he cannot be shown: where a location cannot be looked at, nothing is confirmed.
    """
    only, for_ns = asked.fields.required("location"), asked.fields.duration("for")
    dry_run = asked.fields.flag("dry_run")
    asked.fields.end()
    seen = joined(asked.place.each(only, lambda guest: guest.confirmable(only)), None)
    for each in seen.locations:
        if each.outcome in (Outcome.UNAVAILABLE, Outcome.FAILED):
            raise LocationUnavailableError(f"nothing is confirmed: {each.warnings[0]}")
    if all(each.absent for each in seen.locations):
        raise ServiceRefusedError(f"nothing is confirmed: {only}: nothing is at its path now", 404)
    until_ns = None
    if not dry_run:
        until_ns = asked.place.knowing(only).confirm(only, for_ns=HOUR if for_ns is None else for_ns)
        _wake(asked, only)
    return {"location": only, "until": iso(until_ns), "plan": plan_json(seen)}


def flush(asked: Asked) -> object:
    """POST /flush: what is known of opens is in the ledger, all of it up to now; an error where it is not."""
    asked.fields.end()
    asked.place.host.openers.flush()
    ledger, clock = asked.place.host.means.ledger, asked.place.host.means.clock
    if not ledger.flush(clock.wall_ns()):
        raise ServiceRefusedError(f"what is known of opens waits for the disk: {ledger.trouble}", 503, 1)
    return {}


def _wake(asked: Asked, only: str | None) -> None:
    for spec in asked.place.guest().select(only).locations:
        asked.place.host.dispatcher.want(spec.key)


def _wait(asked: Asked) -> int:
    wait_ns = asked.fields.duration("wait")
    if wait_ns is not None and wait_ns > _MOST_WAIT_NS:
        raise ServiceRefusedError("wait: 10m at most", 400)
    return _WAIT_NS if wait_ns is None else wait_ns
