"""A filesystem that never answers costs those who ask about it an error, and nobody else anything."""

import os
import threading

import pytest
from tests.system.command import Warden
from tests.system.hanging import mounted
from tests.system.trees import wait_until
from tests.system.users import User, ground

USER = User(50001)
API = "/api/v1"


@pytest.fixture
def hung(needs_root):
    """A service with a location that answers, and one on a filesystem that does not."""
    with ground() as base:
        os.mkdir(f"{base}/hang")
        os.mkdir(f"{base}/root")
        os.chmod(f"{base}/root", 0o1777)
        USER.make(f"{base}/root/mine")
        warden = Warden(f"{base}/warden")
        warden.location("cache", f"{base}/root")
        warden.location("hang", f"{base}/hang")
        warden.daemon |= {"interval": "1h"}
        with warden.service() as service:
            # After its first pass, so that the location is one.
            wait_until(lambda: service.passes() >= 2, 30)
            with mounted(f"{base}/hang", hanging=True):
                yield f"{warden.runtime_dir}/control.sock", base, service


def test_the_rest_is_answered_while_a_filesystem_hangs_and_threads_stay_few(hung):
    socket, base, service = hung

    def threads():
        return len(os.listdir(f"/proc/{service.child.pid}/task"))

    def stuck():
        # Four of them are all that one user may have at work; they wait for the hung filesystem.
        USER.ask(socket, "GET", f"{API}/explain?path={base}/hang/x")

    asking = [threading.Thread(target=stuck, daemon=True) for _ in range(3)]
    for each in asking:
        each.start()
    before = threads()
    other = User(50002)
    for _ in range(5):
        assert USER.ask(socket, "GET", f"{API}/entries?location=cache").entries == ["mine"]
        assert other.ask(socket, "GET", f"{API}/status").status == 200
        assert other.ask(socket, "GET", f"{API}/pins").status == 200
    assert USER.ask(socket, "POST", f"{API}/pins", {"path": f"{base}/root/mine"}).status == 201
    # A thread for each request at work, one for each filesystem, and no more for each further request.
    assert threads() <= before + 8
    assert "this is a bug" not in service.log
