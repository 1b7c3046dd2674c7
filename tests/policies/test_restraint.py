"""What may act while something holds a location back, asked for tools that prune caches of their own."""

import pytest

from cachewarden_policies.restraint import may_prune
from cachewarden_policies.situation import Circumstances


@pytest.mark.parametrize(
    ("circumstances", "over_soft", "over_hard"),
    [
        (Circumstances(), True, True),
        (Circumstances(enforce=False), False, False),
        (Circumstances(quiet=True), False, True),
        (Circumstances(waiting=True), False, False),
        (Circumstances(waiting=True, confirmed=True), True, True),
        (Circumstances(learning=True), True, True),
        (Circumstances(clock_suspect=True), True, True),
    ],
    ids=["free", "report only", "quiet hours", "waiting", "confirmed", "learning", "clock in doubt"],
)
def test_a_tool_prunes_when_a_limit_could_and_not_by_what_we_know_of_last_use(
    circumstances, over_soft, over_hard
):
    assert may_prune(circumstances, over_hard=False) is over_soft
    assert may_prune(circumstances, over_hard=True) is over_hard
