"""The real hub client beside eviction: what stays is complete, what went comes back, nothing is corrupt."""

import os

import pytest
from tests.system.hub_client import digests, download, run_client, scan
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
    """A service that keeps nothing, with a pass every second: the file that the client writes is open."""
    hub.pace = 0.4
    warden.policy |= {"evict_all": True, "min_idle": "500ms"}
    warden.daemon |= {"interval": "1s", "settle": "100ms"}
    with warden.service() as service:
        before = service.passes()
        (answer,) = run_client(hub.url, root, download(REPOS[0]))
        assert service.passes() > before + 1, "the download was over before anything could disturb it"
        assert answer.get("files") == digests(hub.files(REPOS[0])), answer
        assert service.metrics().get("cachewarden_errors_total", 0) == 0
        wait_until(lambda: not os.path.exists(_folder(root, REPOS[0])), 30)


def test_downloads_and_a_service_that_evicts_live_side_by_side(hub, warden, root):
    """A service with room for three of six models, and clients that download what is not there.

    Whatever a client gets is complete, by the bytes, and in between no repository is corrupt. (Clients
    do not ask for a model while it is evicted: the client then only looks whether the files are there,
    which no lease can see.)
    """
    warden.policy |= {"max_size": "7MiB", "target_size": "70%", "min_idle": "3s"}
    warden.daemon |= {"interval": "1s", "settle": "200ms"}
    hub.pace = 0.05
    with warden.service() as service:
        for _ in range(3):
            for _ in range(3):
                wanted = [repo for repo in REPOS if not os.path.isdir(_folder(root, repo))][:2]
                answered = run_client(hub.url, root, *map(download, wanted))
                for repo, answer in zip(wanted, answered, strict=True):
                    assert answer.get("files") == digests(hub.files(repo)), answer
            wait_until(lambda: allocated(root) <= 7 * MIB, 30)
            quiet = service.passes() + 2
            wait_until(lambda quiet=quiet: service.passes() >= quiet)
            _judge(hub, root)
        evictions = service.metrics().get("cachewarden_evictions_total", 0)
        assert evictions >= 6, "the service had hardly anything to do: this shows nothing"
    again = run_client(hub.url, root, *map(download, REPOS))
    assert [each["files"] for each in again] == [digests(hub.files(repo)) for repo in REPOS]


def _judge(hub: Hub, root: str) -> None:
    """Offline, each repository is either complete or not there, and the client's scanner reads them all."""
    *local, scanned = run_client(hub.url, root, *(download(repo, local=True) for repo in REPOS), scan())
    here = {repo for repo in REPOS if os.path.isdir(_folder(root, repo))}
    for repo, answer in zip(REPOS, local, strict=True):
        if repo in here:
            assert answer.get("files") == digests(hub.files(repo)), answer
        else:
            assert answer["error"] == "LocalEntryNotFoundError"
    assert scanned["warnings"] == []
    assert set(scanned["repos"]) == here
