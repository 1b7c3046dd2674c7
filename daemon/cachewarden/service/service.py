"""`cachewarden run`: the main loop. It decides what is wanted and when, and never touches a cache itself.

The loop turns once a second, and when a pass is due, whatever the workers and their filesystems do; only
it pings the service manager's watchdog. Passes run in workers, one for each filesystem; finding locations
runs in the lookout's threads; the HTTP side has its own. They share values, each behind a lock of its own.
"""

import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping

from cachewarden import __version__
from cachewarden.clock import Clock, SystemClock
from cachewarden.enforce.books import newest_pass_ns
from cachewarden.enforce.clockwatch import ClockWatch
from cachewarden.enforce.enforcer import Enforcer
from cachewarden.enforce.measures import MeasureFiles
from cachewarden.enforce.surveyor import Means
from cachewarden.errors import CachewardenError, ConfigurationError
from cachewarden.evict import TRASH_NAME, raise_descriptor_limit
from cachewarden.holders import Machine
from cachewarden.http import Content
from cachewarden.kernel.leases import ignore_sigio
from cachewarden.ledger import PinStore, open_ledger
from cachewarden.logs import Changes, configure, get_logger
from cachewarden.metrics import CONTENT_TYPE, Metrics, ServiceFigures
from cachewarden.notify import Notifier
from cachewarden.openers import Openers, Setting
from cachewarden.schedule import Schedule
from cachewarden.service.announcing import announce
from cachewarden.service.bell import Bell
from cachewarden.service.blinding import blinds
from cachewarden.service.chronicle import Chronicle
from cachewarden.service.dispatcher import Dispatcher, Organs
from cachewarden.service.door import Door
from cachewarden.service.figures import Figures
from cachewarden.service.listening import Listening, shared_out
from cachewarden.service.lookout import Lookout
from cachewarden.service.reloading import with_what_is_built
from cachewarden.service.voice import Voice, sentence
from cachewarden.settings import Settings
from cachewarden.spec import LocationSpec
from cachewarden.watch import Legacy, Told, Watching
from cachewarden_policies.policy import DAY, SECOND

_LOOK_NS = 10 * SECOND  # globs are looked at again at least this often, whatever events say
_ALIVE_NS = 5 * SECOND  # a main loop that did not turn for so long hangs
_LEAVE_SECONDS = 8.0  # for passes under way, when we are asked to leave


class Service:
    """One running service. `load` reads the configuration, now and at each reload."""

    def __init__(self, load: Callable[[], Settings], environ: Mapping[str, str]) -> None:
        self._load = load
        self._settings = load()
        self._clock: Clock = SystemClock()
        configure(self._settings.daemon.log_format)
        self._log = get_logger()
        self._said = Changes()
        self._notify = Notifier(environ)
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._roots = threading.Event()
        self._due = threading.Event()
        self._wake = Bell()
        self._stopping = threading.Event()
        self._ready = False
        self._looked_ns = self._pruned_ns = self._clock.monotonic_ns()
        self._turned_ns = self._clock.awake_ns()
        self._build()

    def _build(self) -> None:
        daemon = self._settings.daemon
        now_ns = self._clock.wall_ns()
        self._ledger = open_ledger(daemon.state_dir, now_ns)
        self._voice = Voice(self._notify, daemon.runtime_dir, now_ns)
        structure, opens = shared_out(self._notify.inherited())
        self._openers = Openers(self._clock, self._ledger.openers, Setting(daemon.ignore_processes, opens))
        self._watching = Watching(
            Told(self._on_change, self._roots.set, self._on_overflow),
            frozenset({TRASH_NAME}),
            Legacy(daemon.state_dir, structure),
            self._openers.features,
        )
        self._figures = Figures(
            ServiceFigures(__version__, now_ns, config_last_reload_success_ns=now_ns), self._watching.mode
        )
        self._metrics = Metrics(self._figures.snapshot)
        self._chronicle = Chronicle(
            self._metrics, self._clock, self._heard, self._wanted, self._figures.recalled
        )
        self._listening = Listening(self._openers, self._watching, self._notify, self._metrics)
        self._clock_watch = ClockWatch(daemon.interval, daemon.runtime_dir, newest_pass_ns(self._ledger))
        self._enforcer = Enforcer(
            Means(
                ledger=self._ledger,
                pins=PinStore(daemon.state_dir),
                clock=self._clock,
                surroundings=Machine(),
                runtime_dir=daemon.runtime_dir,
                command="cachewarden run",
                trusted=frozenset({0, os.geteuid()}),
                journal=self._chronicle,
                clock_watch=self._clock_watch,
                opens=self._openers,
                opens_since_start=lambda _: True,
                changes=self._watching,
                measures=MeasureFiles(daemon.state_dir),
            )
        )
        self._schedule = Schedule(self._on_due, self._clock)
        organs = Organs(
            enforcer=self._enforcer,
            clock=self._clock,
            metrics=self._metrics,
            figures=self._figures,
            watching=self._watching,
            quiet=self._schedule.quiet,
            blinded=lambda: bool(self._blinded()),
            stopping=self._stopping,
            news=self._wake.ring,
        )
        self._dispatcher = Dispatcher(organs, daemon.settle)
        self._lookout = Lookout(self._settings, self._watching.watch_roots, self._roots.set)
        self._blinds = [] if daemon.user_mode else blinds()
        self._door = Door(self._content(), self._dispatcher, lambda: self._settings)
        for notice in self._ledger.take_notices():
            self._log.warning(notice)

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; the exit status. Raises ListenError before it is ready."""
        raise_descriptor_limit()
        ignore_sigio()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, self._on_signal)
        self._configure()
        self._take_territory(wait_seconds=2.0)
        self._schedule.start()
        self._openers.start()
        self._tell()
        self._ready = True
        self._notify.ready(self._sentence())
        self._log.info(
            "ready", version=__version__, pid=os.getpid(), locations=len(self._territory.locations)
        )
        try:
            while not self._stopping.is_set():
                self._wake.wait(self._dispatcher.next_seconds(self._voice.turn_seconds))
                self._turn()
        finally:
            self._leave()
        return 0

    def _turn(self) -> None:
        self._turned_ns = self._clock.awake_ns()
        now_ns = self._clock.monotonic_ns()
        self._heed_signals()
        if self._roots.is_set() or now_ns - self._looked_ns >= _LOOK_NS:
            self._roots.clear()
            self._take_territory()
        if self._due.is_set():
            self._due.clear()
            self._dispatcher.want_all()
        if now_ns - self._pruned_ns >= DAY:
            self._pruned_ns = now_ns
            self._ledger.prune(self._clock.wall_ns())
        self._dispatcher.turn()
        self._figures.set_silent(self._dispatcher.silent())
        self._listening.tend([spec.key for spec in self._territory.locations])
        self._tell()

    def _heed_signals(self) -> None:
        while not self._signals.empty():
            number = self._signals.get()
            if number == signal.SIGHUP:
                self._reload_configuration()
            elif number == signal.SIGUSR1:
                self._dispatcher.want_all()
            else:
                self._log.info("leaving", signal=signal.Signals(number).name)
                self._stopping.set()

    def _take_territory(self, wait_seconds: float = 0.0) -> None:
        self._looked_ns = self._clock.monotonic_ns()
        land = self._territory = self._lookout.look(wait_seconds)
        self._figures.set_locations(land.locations, land.missing)
        self._metrics.retain([(each.name, each.path) for each in (*land.locations, *land.missing)])
        self._dispatcher.take(land)
        announce(land, self._lookout.hung if wait_seconds else (), self._said)

    def _configure(self) -> None:
        """Put what the configuration says of the service itself into force. Raises ListenError."""
        daemon = self._settings.daemon
        self._door.open(daemon.http)  # first: the one thing that can fail, and then nothing is changed
        self._schedule.configure(daemon.interval, daemon.schedule, daemon.quiet_hours)
        self._clock_watch.hold_ns = daemon.interval
        self._dispatcher.requests.settle_ns = daemon.settle
        self._figures.names_users = daemon.metrics_users
        self._chronicle.audit_to(daemon.audit_file)
        for warning in self._settings.warnings:
            if self._said.once(("warning", warning)):
                self._log.warning(warning)

    def _reload_configuration(self) -> None:
        self._notify.reloading("reading the configuration again")
        before = self._settings
        try:
            self._settings = self._load()
            self._settings, waiting = with_what_is_built(before, self._settings)
            for key in waiting:
                self._log.warning("this key changes at the next start only", key=key)
            self._configure()
            configure(self._settings.daemon.log_format)
        except (CachewardenError, ValueError) as error:
            self._settings = before
            problems = error.problems if isinstance(error, ConfigurationError) else [str(error)]
            for problem in problems:
                self._log.error("the configuration is wrong; the old one stays in force", problem=problem)
            self._reloaded(f"failed: {problems[0]}", successful=False)
        else:
            self._lookout.follow(self._settings)
            self._watching.retain_roots({each.name for each in self._settings.locations})
            self._reloaded("ok", successful=True)
            self._take_territory(wait_seconds=2.0)
            self._dispatcher.want_all()
            self._log.info("configuration read again", locations=len(self._territory.locations))
        self._notify.ready(self._sentence())

    def _reloaded(self, how: str, *, successful: bool) -> None:
        self._voice.reloaded(how, successful=successful)
        self._figures.reloaded(self._clock.wall_ns(), successful=successful)

    def _tell(self) -> None:
        modes = {spec.key: self._watching.mode(spec.key) for spec in self._territory.locations}
        if self._said.changed("blinded", blinded := self._blinded()) and blinded:
            self._log.error("nothing is evicted", reason="; ".join(blinded))
        enforced = {each.name: each.template.enforce for each in self._settings.locations}
        self._voice.tell(self._sentence(), self._schedule.next_due_ns(), modes, blinded, enforced)

    def _blinded(self) -> list[str]:
        return self._blinds + self._lookout.hidden

    def _sentence(self) -> str:
        there, silent = len(self._territory.locations), len(self._dispatcher.silent())
        return sentence(there, silent, self._blinded(), refused=self._voice.refused)

    def _content(self) -> Content:
        return Content(
            metrics=lambda: (self._metrics.render(), CONTENT_TYPE),
            snapshot=self._figures.snapshot,
            alive=lambda: self._clock.awake_ns() - self._turned_ns < _ALIVE_NS,
            ready=lambda: self._ready,
        )

    def _heard(self, spec: LocationSpec) -> None:
        self._dispatcher.heard(spec)

    def _wanted(self, key: str) -> None:
        self._dispatcher.want(key)

    def _on_signal(self, number: int, _: object) -> None:
        self._signals.put(number)
        self._wake.ring()

    def _on_due(self) -> None:
        self._due.set()
        self._wake.ring()

    def _on_change(self, key: str) -> None:
        if self._dispatcher.changed(key):
            self._wake.ring()  # it sleeps until a pass is due, and now one will be

    def _on_overflow(self) -> None:
        self._metrics.count_overflow()
        self._on_due()

    def _leave(self) -> None:
        self._stopping.set()
        self._notify.stopping("finishing")
        self._door.close()
        self._schedule.stop()
        in_order = self._dispatcher.end(_LEAVE_SECONDS)
        if not in_order:
            self._log.warning(
                "a filesystem does not answer; its pass is left behind, and recovered at the next start"
            )
        else:
            self._enforcer.surveyor.measuring.leave()
        self._watching.stop(in_order=in_order)
        self._openers.stop()
        self._ledger.close()
        self._voice.leave()
        self._log.info("left")
