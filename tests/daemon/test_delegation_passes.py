"""When a pass lets a tool prune its cache, and when it does not."""

import os
import subprocess

import pytest
from tests.daemon.delegating import ccache_tree, me, script
from tests.daemon.passes import MIB, Field, limit, policy

from cachewarden.enforce.circumstances import Mood
from cachewarden.enforce.enforcer import Enforcer, Orders
from cachewarden.ledger import Pin
from cachewarden_policies.policy import SECOND
from cachewarden_policies.reasons import Outcome


class TestAPass:
    """A stand-in for ccache that does as its manual says, in the home of the owner."""

    @pytest.fixture
    def field(self, tmp_path):
        """A cache of 8 MiB; the home of whoever runs this is a temporary one."""
        field = Field(tmp_path)
        ccache_tree(field.root, 8)
        script(
            tmp_path / "home/.local/bin/ccache",
            f'test "$1" = --cleanup || exit 9\necho $CCACHE_MAXSIZE >> {tmp_path}/calls\n'
            'rm -f "$CCACHE_DIR"/0/a/*R\necho cleaned\n',
        )
        self.calls = tmp_path / "calls"
        self.live_in(field, tmp_path / "home")
        return field

    def live_in(self, field, home):
        """Let the owner of the cache have this home."""
        field.enforcer = Enforcer(field.enforcer.means, accounts=lambda _uid: me(home))

    def run(self, field, limits, **changes):
        """One pass."""
        return field.run(policy(limits=limits), **changes)

    def test_over_the_limit_the_tool_prunes_to_the_target(self, field):
        report = self.run(field, limit(6, 4), delegate=True)
        assert self.calls.read_text() == "4096Ki\n"
        assert report.outcome is Outcome.TRIMMED
        assert report.bytes_after < MIB
        assert any("cleaned" in each and "exit status 0" in each for each in field.heard.notices)

    def test_within_its_limits_nothing_runs(self, field):
        self.run(field, limit(20), delegate=True)
        assert not self.calls.exists()

    def test_without_delegate_it_is_only_reported(self, field):
        report = self.run(field, limit(6, 4))
        assert not self.calls.exists()
        assert report.outcome is Outcome.SHORT
        assert report.foreign_bytes == report.bytes_after

    def test_report_only_runs_nothing(self, field):
        self.run(field, limit(6, 4), delegate=True, enforce=False)
        assert not self.calls.exists()

    @pytest.mark.parametrize(
        "orders",
        [Orders(tools=False), Orders(only="another"), Orders(requested=True), Orders(Mood(quiet=True))],
        ids=["apply", "another location", "evict PATH", "quiet hours"],
    )
    def test_a_pass_about_something_else_or_in_quiet_hours_runs_nothing(self, field, orders):
        field.run(policy(limits=limit(6, 4)), orders, delegate=True)
        assert not self.calls.exists()

    def test_a_tool_that_does_not_help_is_not_asked_again_at_once(self, field, tmp_path):
        script(tmp_path / "home/.local/bin/ccache", f"echo x >> {tmp_path}/calls; exit 1")
        for _ in range(3):
            report = self.run(field, limit(6, 4), delegate=True)
        assert report.outcome is Outcome.SHORT
        assert self.calls.read_text() == "x\n"
        (field.root / "0/a/2R").write_bytes(b"x" * 2 * MIB)
        field.clock.advance(600 * SECOND)
        self.run(field, limit(6, 4), delegate=True)
        assert self.calls.read_text() == "x\nx\n"
        field.clock.advance(7 * 3600 * 10**9)
        self.run(field, limit(6, 4), delegate=True)
        assert self.calls.read_text() == "x\nx\nx\n"

    @pytest.mark.parametrize("pinned", ["", "0/a/1R", ".."])
    def test_what_is_pinned_is_not_left_to_a_tool_that_knows_no_pins(self, field, pinned):
        path = os.path.normpath(os.fsencode(field.root / pinned))
        field.pins.add(Pin(path, field.clock.wall_ns()), field.clock.wall_ns())
        self.run(field, limit(6, 4), delegate=True)
        assert not self.calls.exists()
        assert any("pinned" in each for each in field.heard.notices)

    def test_where_the_pins_cannot_be_read_no_tool_runs(self, field, tmp_path):
        (tmp_path / "state" / "pins.json").write_text("{")
        self.run(field, limit(6, 4), delegate=True)
        assert not self.calls.exists()

    @pytest.mark.parametrize("guard", ["protect", "exclude"])
    def test_where_a_pattern_holds_something_no_tool_runs(self, field, guard):
        field.run(policy(limits=limit(6, 4), **{guard: ("0/b/*",)}), delegate=True)
        assert not self.calls.exists()
        assert any("would not heed" in each for each in field.heard.notices)

    def test_where_something_is_mounted_inside_no_tool_runs(self, field, needs_root):
        inside = field.root / "1"
        inside.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", inside], check=True)
        try:
            self.run(field, limit(6, 4), delegate=True)
        finally:
            subprocess.run(["umount", inside], check=True)
        assert not self.calls.exists()
        assert any("mounted in it, at 1" in each for each in field.heard.notices)

    def test_a_tool_that_takes_long_waits_long_however_much_there_is(self, field, tmp_path):
        """Otherwise whoever owns the cache holds up all others of that filesystem."""
        grow = 'dd if=/dev/zero bs=1M count=2 of="$CCACHE_DIR/0/a/$$R" 2>&1'
        script(tmp_path / "home/.local/bin/ccache", f"echo x >> {tmp_path}/calls; {grow}; sleep 2")
        for advanced, calls in ((0, 1), (60, 1), (3600, 2)):
            field.clock.advance(advanced * SECOND)
            (field.root / f"0/a/more{advanced}R").write_bytes(b"x" * 3 * MIB)
            self.run(field, limit(6, 4), delegate=True)
            assert self.calls.read_text() == "x\n" * calls

    def test_a_refusal_is_said_once_and_stops_nothing(self, field):
        for _ in range(2):
            report = field.run(policy(limits=limit(6, 4), protect=("no/such",)), delegate=True)
            assert report.outcome is Outcome.SHORT
        assert sum("not delegated to ccache" in each for each in field.heard.notices) == 1
