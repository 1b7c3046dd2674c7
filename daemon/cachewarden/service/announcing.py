"""What is said of the locations that were found, when it changes."""

from collections.abc import Iterable

from cachewarden.logs import Changes, get_logger
from cachewarden.paths import show
from cachewarden.spec import Territory


def announce(land: Territory, hung: Iterable[str], said: Changes) -> None:
    """Log who is refused, which mounts are away or back, and the names whose filesystem does not answer.

    A location that is not there and need not be a mount is within its limits, and worth no line.
    """
    log = get_logger()
    for each in land.refused:
        if said.changed(("refused", each.name, each.path), each.reason):
            log.warning("refused", location=each.name, path=show(each.path), reason=each.reason)
    for spec in land.missing:
        if spec.must_be_mount and said.changed(("away", spec.key), True, False):
            log.warning("unavailable: nothing is mounted there", location=spec.name, path=show(spec.path))
    for spec in land.locations:
        if spec.must_be_mount and said.changed(("away", spec.key), False, False):
            log.info("mounted again", location=spec.name, path=show(spec.path))
    for name in hung:
        if said.once(("hung", name)):
            log.warning("its filesystem does not answer", location=name)
