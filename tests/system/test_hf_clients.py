"""Hub clients from 0.24 to 2.x, with links and without: one revision goes, and nothing is ever half there."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from tests.system.client_packages import installed
from tests.system.hub_client import digests, download, run_client, scan
from tests.system.hub_endpoint import Hub
from tests.system.trees import age, allocated

REPO, OTHER = "org/model", "org/other"
REVIEW = "refs/pr/1"


@dataclass(frozen=True)
class Client:
    """A version of huggingface_hub; None is that of this environment."""

    packages: str | None
    environ: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, hub: Hub, cache: str, *requests: dict[str, object]) -> list[dict]:
        """Carry out requests in one process of this client."""
        where = None if self.packages is None else installed(self.packages)
        return run_client(hub.url, cache, *requests, extra=self.environ, packages=where)


NO_LINKS = {"HF_HUB_DISABLE_SYMLINKS": "1"}
CLIENTS = {
    "hub 0.24": Client("hub-0.24"),
    "hub 0.36": Client("hub-0.36"),
    "hub 1.33": Client("hub-1.33"),
    "hub 1.33 without links": Client("hub-1.33", NO_LINKS),
    "hub 2": Client(None),
    "hub 2 without links": Client(None, NO_LINKS),
}


@pytest.fixture(params=CLIENTS)
def client(request) -> Client:
    return CLIENTS[request.param]


@pytest.fixture
def hub():
    """A model with a pull request beside `main`, which share a file, and another model."""
    with Hub() as made:
        made.model(REPO, 1)
        made.model(REPO, 1, ref=REVIEW)
        made.model(OTHER, 1)
        yield made


def _age_revision(cache: str, commit: str, days: float) -> None:
    """What only this revision uses was used so many days ago, the rest of the repository yesterday."""
    repo = os.path.join(cache, "models--" + REPO.replace("/", "--"))
    age(repo, 1)
    snapshot = f"{repo}/snapshots/{commit}"
    age(snapshot, days)
    for here, _, names in os.walk(snapshot):
        for name in names:
            if name != "vocab.txt":  # the one file that both revisions have
                age(os.path.realpath(os.path.join(here, name)), days)
    if os.path.exists(f"{repo}/trees/{commit}.json"):
        age(f"{repo}/trees/{commit}.json", days)
    age(f"{repo}/refs/main", days)


def _shows_links(cache: str) -> bool:
    links = [os.path.islink(os.path.join(here, name)) for here, _, names in os.walk(cache) for name in names]
    return any(links)


def test_one_revision_goes_and_the_client_misses_it_and_nothing_else(client, hub, warden, root):
    """Offline, the other one is complete; the scanner has no complaint; the missing one comes back whole."""
    main, review, _ = client(hub, root, download(REPO), download(REPO, REVIEW), download(OTHER))
    commit = os.path.basename(main["path"])
    assert main["files"] == digests(hub.files(REPO)), main
    assert _shows_links(root) is (client.environ != NO_LINKS)
    _age_revision(root, commit, 30)
    warden.policy |= {"max_size": f"{allocated(root) - 4096}", "target_size": "100%"}
    done = warden.once()
    assert done.evicted == [f"models--org--model@{commit}"]
    gone, kept, other, scanned = client(
        hub,
        root,
        download(REPO, local=True),
        download(REPO, REVIEW, local=True),
        download(OTHER, local=True),
        scan(),
    )
    assert gone["error"] == "LocalEntryNotFoundError"
    assert kept["files"] == review["files"] == digests(hub.files(REPO, REVIEW))
    assert other["files"] == digests(hub.files(OTHER))
    assert scanned["warnings"] == []
    assert scanned["repos"][REPO] == [os.path.basename(review["path"])]
    back, scanned = client(hub, root, download(REPO), scan())
    assert back["files"] == digests(hub.files(REPO))
    assert (scanned["warnings"], len(scanned["repos"][REPO])) == ([], 2)


def test_everything_goes_and_comes_back(client, hub, warden, root):
    """Empty, it is a hub cache still: the clients' lock files are no entries."""
    client(hub, root, download(REPO), download(REPO, REVIEW), download(OTHER))
    warden.policy |= {"evict_all": True}
    for _ in range(2):  # the last of two revisions goes as the repository that it is then
        warden.once()
    assert not [name for name in os.listdir(root) if name.startswith("models--")]
    assert warden.once().evicted == []
    assert os.path.isdir(f"{root}/.locks")
    answered = client(hub, root, download(REPO), download(REPO, REVIEW), scan())
    assert [each["files"] for each in answered[:2]] == [
        digests(hub.files(REPO)),
        digests(hub.files(REPO, REVIEW)),
    ]
    assert answered[2]["warnings"] == []


@pytest.mark.parametrize(("first", "second"), [("hub 0.24", "hub 2"), ("hub 2", "hub 0.24")])
def test_clients_of_two_ages_share_a_cache_that_we_keep_small(first, second, hub, warden, root):
    """What one downloaded goes; each of them reads what the other left."""
    (main,) = CLIENTS[first](hub, root, download(REPO))
    (review,) = CLIENTS[second](hub, root, download(REPO, REVIEW))
    commit = os.path.basename(main["path"])
    _age_revision(root, commit, 30)
    warden.policy |= {"max_size": f"{allocated(root) - 4096}", "target_size": "100%"}
    assert warden.once().evicted == [f"models--org--model@{commit}"]
    for client in (CLIENTS[first], CLIENTS[second]):
        kept, scanned = client(hub, root, download(REPO, REVIEW, local=True), scan())
        assert kept["files"] == review["files"]
        # The new client's tag is no repository to the old one.
        assert not [text for text in scanned["warnings"] if "CACHEDIR.TAG" not in text]
