"""`partial_max_idle`, from a download that was given up in a hub cache to its end."""

import os
import time

import pytest
from tests.system.trees import age, fill

COMMIT = "c" * 40
PARTIAL = ["e.incomplete", "e.1a2b3c4d.incomplete", "e.downloadInProgress"]


def _repository(root, *, days=2.0):
    repo = f"{root}/models--o--m"
    fill(f"{repo}/blobs/whole", 1)
    os.makedirs(f"{repo}/snapshots/{COMMIT}")
    os.symlink("../../blobs/whole", f"{repo}/snapshots/{COMMIT}/w")
    age(root, days)
    return repo


@pytest.fixture
def repo(root, warden):
    warden.policy |= {"max_size": "1GiB", "partial_max_idle": "3d"}
    return _repository(root)


@pytest.mark.parametrize("name", PARTIAL)
def test_an_abandoned_partial_goes_and_its_repository_stays(warden, repo, name):
    """Whatever the usage; the reason is its own."""
    fill(f"{repo}/blobs/{name}", 1)
    age(f"{repo}/blobs/{name}", 4)
    done = warden.once()
    assert done.evicted == ["models--o--m@partial"]
    assert done.only["evicted"][0]["reason"] == "partial"
    assert os.listdir(f"{repo}/blobs") == ["whole"]
    assert (done.status, done.json["outcome"]) == (0, "trimmed")


@pytest.mark.parametrize("name", PARTIAL)
def test_one_that_was_young_when_it_was_seen_first_goes_when_its_time_is_over(warden, repo, name):
    """Not twice that time: that it becomes an entry of its own only then is no sign of use."""
    fill(f"{repo}/blobs/{name}", 1)
    age(f"{repo}/blobs/{name}", 2)
    assert warden.once().evicted == []
    assert os.path.exists(f"{repo}/blobs/{name}")
    age(f"{repo}/blobs/{name}", 3.01)
    assert warden.once().evicted == ["models--o--m@partial"]


@pytest.mark.parametrize("name", PARTIAL)
def test_one_that_may_still_run_stays_even_if_everything_is_to_go(warden, repo, name):
    """And keeps the repository where it may be resumed, because a download needs that."""
    fill(f"{repo}/blobs/{name}", 1)
    age(f"{repo}/blobs/{name}", 2)
    warden.policy |= {"evict_all": True}
    done = warden.once()
    if name == "e.1a2b3c4d.incomplete":  # useless to anybody but its writer, who would have it open
        assert done.evicted == ["models--o--m"]
    else:
        assert done.kept == {"models--o--m": "partial"}
        assert os.path.exists(f"{repo}/blobs/{name}")


def test_a_partial_that_was_read_lately_is_not_abandoned(warden, repo):
    """Its writer looks into it before it goes on."""
    name = f"{repo}/blobs/e.incomplete"
    fill(name, 1)
    then = time.time()
    os.utime(name, (then - 86_400, then - 4 * 86_400))
    done = warden.once()
    assert done.evicted == []
    assert warden.entries()["models--o--m@partial"]["reason"] == "partial"


def test_no_age_means_that_no_partial_is_ever_abandoned(warden, repo):
    fill(f"{repo}/blobs/e.incomplete", 1)
    age(f"{repo}/blobs/e.incomplete", 400)
    warden.policy |= {"partial_max_idle": "none"}
    assert warden.once().evicted == []
