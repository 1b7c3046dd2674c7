"""`once`, `plan`, `apply`, `evict`: passes, and the plan of one."""

from typing import Annotated

import typer

from cachewarden.cli.blocks import Style
from cachewarden.cli.face import Face, face_of, finish, now_ns, status_of
from cachewarden.cli.files import read_plan, write_plan
from cachewarden.cli.guard import DONE, LOCKED
from cachewarden.cli.options import Json, Location, Path, Wait, byte_count, duration, entry_path
from cachewarden.cli.views.passes import pass_blocks
from cachewarden.cli.views.plans import plan_blocks
from cachewarden.report import PassReport

_ONCE = """\b
Examples:
  sudo cachewarden once                          all locations
  sudo cachewarden once --location models        one of them
  sudo cachewarden once --free 50GiB             make room now
  sudo cachewarden once --json | jq .outcome     for scripts
"""
_PLAN = """\b
Examples:
  sudo cachewarden plan
  sudo cachewarden plan --location models --probe
  sudo cachewarden plan -o plan.json && sudo cachewarden apply plan.json
  sudo cachewarden plan --check --json > plan.json || echo "over a limit"
"""
_APPLY = """\b
Examples:
  sudo cachewarden plan -o plan.json
  sudo cachewarden apply plan.json
"""
_EVICT = """\b
Examples:
  cachewarden --user evict ~/.accelerate/offload/old-model
  sudo cachewarden evict /srv/hub/models--acme--chat@0f2c1d…
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog=_ONCE, short_help="Evict what has to go, once.")(once)
    app.command(epilog=_PLAN, short_help="Show what would go and why; touch nothing.")(plan)
    app.command(epilog=_APPLY, short_help="Carry out a plan, as far as it still holds.")(apply)
    app.command(epilog=_EVICT, short_help="Evict one entry now.")(evict)


def once(
    ctx: typer.Context,
    location: Location = None,
    free: Annotated[
        str | None,
        typer.Option(
            "--free",
            metavar="SIZE",
            help="Evict until this much is free on the filesystem, whatever the limits say (50GiB). "
            "What is in use, pinned or protected stays all the same.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Go beyond max_share in this pass, without a confirmation.")
    ] = False,
    wait: Wait = "30s",
    as_json: Json = False,
) -> None:
    """Measure, evict what has to go, and leave: one pass, as the service does it.

    Ends with status 0 when every location is within its limits afterwards, with 1 when one is not, and
    says what stands in the way.
    """
    face = face_of(ctx)
    wanted = None if free is None else byte_count("--free", free)
    wait_ns = duration("--wait", wait)
    with face.house("once", live=not as_json) as house:
        report = house.once(only=location, free=wanted, confirmed=yes, wait_ns=wait_ns)
    _passed(face, report, as_json=as_json)


def plan(
    ctx: typer.Context,
    location: Location = None,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Ask the kernel for each file that would go (a lease, given back at once) instead of "
            "looking once into /proc.",
        ),
    ] = False,
    as_json: Json = False,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the plan to this file, for `apply`."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="End with status 1 when a pass would not bring everything within limits."
        ),
    ] = False,
) -> None:
    """Show what would go, in which order and why, and what stays and why. Touches nothing.

    Whether an entry is in use is looked up once. A pass asks again at the moment of each eviction, spares
    what is busy then, and plans anew; `apply` takes nothing that the plan does not list.
    """
    face = face_of(ctx)
    with face.house("plan") as house:
        report = house.plan(only=location, probe=probe)
        report_only = house.settings.report_only
    if output is not None:
        write_plan(output, report.to_json())
    if as_json:
        face.screen.json(report.to_json())
    else:
        face.screen.show([*plan_blocks(report, now_ns(), report_only)])
    finish(status_of(report.outcome) if check else DONE)


def apply(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A plan that `cachewarden plan -o FILE` wrote; - reads it here."),
    ],
    wait: Wait = "30s",
    as_json: Json = False,
) -> None:
    """Carry out a plan, as far as it still holds.

    Each entry is looked at again: what changed since, is in use, or need not go any more stays. Nothing
    goes that the plan does not list.
    """
    face = face_of(ctx)
    wait_ns = duration("--wait", wait)
    content = read_plan(file)
    with face.house("apply", live=not as_json) as house:
        report = house.apply(content, wait_ns=wait_ns)
    _passed(face, report, as_json=as_json)


def evict(ctx: typer.Context, path: Path, wait: Wait = "30s", as_json: Json = False) -> None:
    """Evict one entry now, whatever the limits say.

    What is in use, pinned, protected by its layout or mounted stays all the same, and the command says who
    holds it. Without root: only what is yours.
    """
    face = face_of(ctx)
    wait_ns = duration("--wait", wait)
    wanted = entry_path(path)
    with face.either("evict", live=not as_json) as house:
        report = house.evict(wanted, wait_ns=wait_ns)
    _passed(face, report, as_json=as_json, requested=True)


def _passed(face: Face, report: PassReport, *, as_json: bool, requested: bool = False) -> None:
    if as_json:
        face.screen.json(report.to_json())
    else:
        blocks = pass_blocks(report, now_ns(), told=face.screen.terminal, requested=requested)
        face.screen.show([*blocks])
    for text in report.locked:
        face.screen.say(text, Style.WARN)
    finish(LOCKED if report.locked else status_of(report.outcome))
