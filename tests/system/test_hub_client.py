"""The real hub client beside eviction: what stays is complete, what went comes back, nothing is corrupt."""

import os
import time

import pytest
from tests.system.hub_client import answers, digests, download, run_client, scan, start_client
from tests.system.hub_endpoint import Hub
from tests.system.trees import MIB, age, allocated, wait_until

REPOS = tuple(f"org/model-{number}" for number in range(6))


@pytest.fixture
def hub():
    """A hub with six models, one with a pull request beside `main`, and a data set."""
    with Hub() as made:
        for repo in REPOS:
            made.model(repo, 2)
        made.model(REPOS[0], 2, ref="refs/pr/1")
        yield made


def _folder(cache: str, repo: str) -> str:
    return os.path.join(cache, "models--" + repo.replace("/", "--"))


def _download_aged(hub: Hub, cache: str) -> None:
    """All models, the first one downloaded first and used longest ago."""
    assert all("path" in each for each in run_client(hub.url, cache, *map(download, REPOS)))
    for number, repo in enumerate(REPOS):
        age(_folder(cache, repo), 30 - number)


def test_the_endpoint_serves_what_the_client_asks_for(hub, root):
    """Two revisions, one behind a name with slashes; a missing repository and revision are told apart."""
    commit = hub.repos["model", REPOS[0]].refs["main"]
    main, review, again, none, wrong = run_client(
        hub.url,
        root,
        download(REPOS[0]),
        download(REPOS[0], "refs/pr/1"),
        download(REPOS[0], commit, local=True),
        download("org/none"),
        download(REPOS[0], "nowhere"),
    )
    assert main["files"] == again["files"] == digests(hub.files(REPOS[0]))
    assert review["files"] == digests(hub.files(REPOS[0], "refs/pr/1"))
    assert (none["error"], wrong["error"]) == ("RepositoryNotFoundError", "RevisionNotFoundError")


def test_kept_repositories_are_complete_offline_and_evicted_ones_download_again(hub, warden, root):
    """The two least recently used models go; the client's own scanner has nothing to complain of."""
    _download_aged(hub, root)
    warden.policy |= {"max_size": f"{allocated(root) - 3 * MIB}", "target_size": "100%"}
    done = warden.once()
    assert done.evicted == [f"models--org--model-{number}" for number in (0, 1)]
    *local, scanned = run_client(hub.url, root, *(download(repo, local=True) for repo in REPOS), scan())
    assert [each.get("error") for each in local[:2]] == ["LocalEntryNotFoundError"] * 2
    assert [each["files"] for each in local[2:]] == [digests(hub.files(repo)) for repo in REPOS[2:]]
    assert (scanned["warnings"], set(scanned["repos"])) == ([], set(REPOS[2:]))
    (back,) = run_client(hub.url, root, download(REPOS[0]))
    assert back["files"] == digests(hub.files(REPOS[0]))


def test_one_revision_of_several_goes_and_the_other_stays_whole(hub, warden, root):
    """They share blobs: the vocabulary is the same file in both. The ref with slashes goes too."""
    main, review = run_client(hub.url, root, download(REPOS[0]), download(REPOS[0], "refs/pr/1"))
    (old, new) = (os.path.basename(each["path"]) for each in (main, review))
    repo = _folder(root, REPOS[0])
    age(repo, 1)
    age(f"{repo}/snapshots/{old}", 30)
    for name in os.listdir(f"{repo}/snapshots/{old}"):
        blob = os.path.realpath(f"{repo}/snapshots/{old}/{name}")
        if os.path.isfile(blob):
            age(blob, 30)
    age(f"{repo}/trees/{old}.json", 30)
    age(f"{repo}/refs/main", 30)
    warden.policy |= {"max_size": "3MiB", "target_size": "100%"}
    done = warden.once()
    assert done.evicted == [f"models--org--model-0@{old}"]
    gone, kept, scanned = run_client(
        hub.url,
        root,
        download(REPOS[0], local=True),
        download(REPOS[0], "refs/pr/1", local=True),
        scan(),
    )
    assert gone["error"] == "LocalEntryNotFoundError"
    assert kept["files"] == digests(hub.files(REPOS[0], "refs/pr/1"))
    assert scanned["warnings"] == []
    assert scanned["repos"] == {REPOS[0]: [new]}


def test_a_running_download_is_never_taken_apart(hub, warden, root):
    """`evict_all` in a loop while the client writes: the file that it has open keeps its repository."""
    hub.pace = 0.1
    warden.policy |= {"evict_all": True, "min_idle": "1s"}
    client = start_client(hub.url, root, [download(REPOS[0])])
    passes = 0
    while client.poll() is None:
        passes += 1
        assert warden.once().only["failed"] == []
    (answer,) = answers(client)
    assert passes > 1, "the download was over before anything could disturb it"
    assert answer.get("files") == digests(hub.files(REPOS[0])), answer


def test_downloads_and_a_service_that_evicts_live_side_by_side(hub, warden, root):
    """A service with room for three of six models, clients that ask for all of them again and again.

    Whatever a client gets is complete, by the bytes; in the end no repository is corrupt.
    """
    warden.policy |= {"max_size": "7MiB", "target_size": "70%", "min_idle": "1s"}
    warden.daemon |= {"interval": "1s", "settle": "200ms"}
    hub.pace = 0.02
    wanted = [repo for _ in range(5) for repo in REPOS]
    with warden.service() as service:
        client = start_client(hub.url, root, [download(repo) for repo in wanted])
        answered = answers(client, timeout=120)
        wait_until(lambda: allocated(root) <= 7 * MIB, 30)
        evictions = service.metrics().get("cachewarden_evictions_total", 0)
    for repo, answer in zip(wanted, answered, strict=True):
        assert answer.get("files") == digests(hub.files(repo)), answer
    assert evictions >= 3, "the service had nothing to do: the test shows nothing"
    time.sleep(0.1)
    *local, scanned = run_client(hub.url, root, *(download(repo, local=True) for repo in REPOS), scan())
    here = {repo for repo in REPOS if os.path.isdir(_folder(root, repo))}
    for repo, answer in zip(REPOS, local, strict=True):
        if repo in here:
            assert answer.get("files") == digests(hub.files(repo)), answer
        else:
            assert answer["error"] == "LocalEntryNotFoundError"
    assert scanned["warnings"] == []
    assert set(scanned["repos"]) == here
    again = run_client(hub.url, root, *map(download, REPOS))
    assert [each["files"] for each in again] == [digests(hub.files(repo)) for repo in REPOS]
