"""Hub caches with odd, shared and foreign parts: nothing crashes, nothing vanishes, strangers stay."""

import os
import shutil

import pytest
from tests.daemon.layout_trees import A, B, repository
from tests.system.caches import checkpoint, configuration, offload_folder
from tests.system.trees import MIB, age, allocated, contents, fill, holding_open, write

COMMIT = "a" * 40
OTHER = "b" * 40


def _repo(root: str, name: str, *, ref: str | None = COMMIT) -> str:
    """An empty repository with one snapshot directory."""
    path = f"{root}/models--o--{name}"
    for part in ("blobs", "refs", f"snapshots/{COMMIT}"):
        os.makedirs(f"{path}/{part}")
    if ref is not None:
        write(f"{path}/refs/main", ref)
    return path


def _blob(repo: str, name: str, mebibytes: float) -> None:
    """A blob, and the link to it in the snapshot."""
    fill(f"{repo}/blobs/{name}", mebibytes)
    os.symlink(f"../../blobs/{name}", f"{repo}/snapshots/{COMMIT}/w{name}")


def _odd(root: str) -> None:
    """Six repositories that the client's own scanner mostly cannot read, and furniture around them."""
    good = _repo(root, "good", ref=COMMIT + "\n")
    _blob(good, "e1", 1)
    broken = _repo(root, "broken")
    _blob(broken, "e1", 4)
    os.symlink("../../blobs/gone", f"{broken}/snapshots/{COMMIT}/x")
    _repo(root, "empty")
    fill(f"{root}/models--o--nosnap/blobs/z", 2)
    _blob(_repo(root, "dangref", ref=OTHER), "d", 1)
    inc = _repo(root, "inc", ref=None)
    _blob(inc, "k", 1)
    fill(f"{inc}/blobs/k2.1a2b3c4d.incomplete", 8)
    os.makedirs(f"{root}/.locks/models--o--good")
    furniture = (".DS_Store", "CACHEDIR.TAG", "version.txt", ".locks/models--o--good/e1.lock")
    for name in (*furniture, "models--o--good/refs/.DS_Store", "models--o--good/snapshots/.DS_Store"):
        write(f"{root}/{name}", "")


def test_broken_repositories_are_listed_with_all_that_they_hold(warden, root):
    """Dangling links and refs, no snapshots, an unfinished download: six entries, and usage is whole."""
    _odd(root)
    planned = warden.plan()
    listed = warden.entries()
    rounded = {name.removeprefix("models--o--"): each["bytes"] // MIB for name, each in listed.items()}
    assert rounded == {"good": 1, "broken": 4, "empty": 0, "nosnap": 2, "dangref": 1, "inc": 9}
    assert planned.only["bytes_before"] == allocated(root) == sum(each["bytes"] for each in listed.values())
    assert planned.only["warnings"] == []
    assert planned.status == 0


def test_every_broken_repository_can_go_as_a_whole_and_the_furniture_stays(warden, root):
    """What nobody could remove any more is what fills the disk."""
    _odd(root)
    warden.policy |= {"evict_all": True}
    done = warden.once()
    assert len(done.evicted) == 6
    assert done.only["failed"] == []
    assert sorted(os.listdir(root)) == [".DS_Store", ".locks", "CACHEDIR.TAG", "version.txt"]
    assert os.listdir(f"{root}/.locks/models--o--good") == ["e1.lock"]
    assert done.status == 0


HASH = "ab" + "0" * 62


def _shared(root: str) -> None:
    """Repositories A and B, 1 MiB of their own each, and 1 MiB in the store that both link to."""
    write(f"{root}/blobs/.huggingface-shared-blobs", "1\n")
    fill(f"{root}/blobs/ab/{HASH}")
    for name in "AB":
        repo = _repo(root, name)
        os.symlink(f"../../blobs/ab/{HASH}", f"{repo}/blobs/e1")
        os.symlink("../../blobs/e1", f"{repo}/snapshots/{COMMIT}/w")
        _blob(repo, "own", 1)
        with open(f"{root}/blobs/ab/{HASH}.refs", "a", encoding="utf-8") as manifest:
            manifest.write(f"models--o--{name}/blobs/e1\n")
    age(f"{root}/models--o--A", 9)


def _read_through(root: str, name: str) -> int:
    """Length of the shared file as a reader of the snapshot sees it."""
    with open(f"{root}/models--o--{name}/snapshots/{COMMIT}/w", "rb") as file:
        return len(file.read())


def test_a_shared_payload_counts_once_and_an_open_one_holds_all_that_link_to_it(warden, root):
    """The open file's real path is outside of both repositories."""
    _shared(root)
    warden.policy |= {"max_size": "2560KiB", "target_size": "100%"}
    with holding_open(f"{root}/models--o--A/snapshots/{COMMIT}/w"):
        done = warden.once()
    assert done.only["bytes_before"] == allocated(root)
    assert allocated(root) // MIB == 3
    assert done.evicted == []
    assert done.kept == {"models--o--A": "in_use", "models--o--B": "in_use"}
    assert done.status == 1


def test_one_of_two_repositories_goes_and_leaves_the_shared_payload_to_the_other(warden, root):
    """Only what is its own is won."""
    _shared(root)
    warden.policy |= {"max_size": "2560KiB", "target_size": "100%"}
    done = warden.once()
    assert done.evicted == ["models--o--A"]
    assert done.only["evicted"][0]["freed_bytes"] // MIB == 1
    assert _read_through(root, "B") == MIB
    assert done.status == 0


def test_the_payload_goes_with_its_last_repository_and_the_store_stays(warden, root):
    """Payload and list of users go; the marker stays, because the client looks for it."""
    _shared(root)
    warden.policy |= {"evict_all": True}
    done = warden.once()
    assert sorted(done.evicted) == ["models--o--A", "models--o--B"]
    assert list(contents(root)) == [b"blobs/.huggingface-shared-blobs"]
    assert sum(each["freed_bytes"] for each in done.only["evicted"]) >= 3 * MIB


def test_a_blobs_directory_without_the_marker_is_foreign(warden, root):
    """It may be anybody's."""
    _shared(root)
    os.unlink(f"{root}/blobs/.huggingface-shared-blobs")
    warden.policy |= {"evict_all": True}
    done = warden.once()
    assert os.path.getsize(f"{root}/blobs/ab/{HASH}") == MIB
    assert done.only["foreign_bytes"] >= MIB


def test_a_payload_whose_list_of_users_is_missing_stays_for_ever(warden, root):
    """Its users cannot be known: a leak, never a guess."""
    _shared(root)
    os.unlink(f"{root}/blobs/ab/{HASH}.refs")
    warden.policy |= {"evict_all": True}
    done = warden.once()
    assert sorted(done.evicted) == ["models--o--A", "models--o--B"]
    assert os.path.getsize(f"{root}/blobs/ab/{HASH}") == MIB


def test_credentials_configuration_and_strangers_stay_whatever_the_limit(warden, root):
    """A whole home of a hub client: only the repository goes, and the rest is reported as what blocks."""
    secrets = {"token": "hf_x\n", "stored_tokens": "s\n"}
    secrets["accelerate/default_config.yaml"] = "compute_environment: LOCAL\n"
    for name, text in secrets.items():
        write(f"{root}/{name}", text)
        os.chmod(f"{root}/{name}", 0o600)
    os.mkdir(f"{root}/hub")
    _blob(_repo(f"{root}/hub", "m"), "e", 2)
    fill(f"{root}/hub/my_experiments/ckpt.pt", 5)
    age(root, 400)
    before = {name: os.lstat(f"{root}/{name}") for name in secrets}
    warden.policy |= {"max_size": "1MiB"}
    done = warden.once()
    assert [name.rpartition("/")[2] for name in done.evicted] == ["models--o--m"]
    left = contents(root)
    assert {os.fsdecode(path) for path in left} == {*secrets, "hub/my_experiments/ckpt.pt"}
    for name, text in secrets.items():
        now = os.lstat(f"{root}/{name}")
        assert left[name.encode()] == text.encode()
        assert (now.st_mode, now.st_uid, now.st_mtime) == (
            before[name].st_mode,
            before[name].st_uid,
            before[name].st_mtime,
        )
    assert done.only["bytes_after"] == allocated(root)
    assert done.only["foreign_bytes"] + sum(done.only["blocked_bytes"].values()) >= 5 * MIB
    assert (done.status, done.json["outcome"]) == (1, "short")
    naming = [text for text in done.only["warnings"] if "my_experiments" in text]
    assert len(naming) == 1


@pytest.mark.parametrize("keep", ["never", {"keep_newest": 1}], ids=["by default", "beyond the newest"])
def test_training_checkpoints_go_only_where_the_administrator_said_so(warden, root, keep):
    """A checkpoint is lost when it goes: nothing rebuilds it."""
    configuration(root)
    for number in (0, 1):
        checkpoint(f"{root}/checkpoints/checkpoint_{number}", 1)
    offload_folder(f"{root}/offload/tiny", 1)
    age(root, 40)
    warden.location("cache", root, evict_checkpoints=keep)
    warden.policy |= {"evict_all": True}
    done = warden.once()
    gone = {"offload/tiny"} if keep == "never" else {"offload/tiny", "checkpoints/checkpoint_0"}
    assert set(done.evicted) == gone
    assert os.path.exists(f"{root}/default_config.yaml")
    assert os.path.exists(f"{root}/checkpoints/checkpoint_1/optimizer.bin")
    shutil.rmtree(f"{root}/checkpoints")


def test_a_pin_on_the_name_of_a_revision_holds_it_also_when_it_is_the_only_one_left(warden, root):
    """People pin what `list` shows: `REPO@COMMIT` is no path, and must not be a pin on nothing."""
    repo = repository(os.fsencode(root), b"models--o--m", A, B).decode()
    warden.policy["evict_all"] = True
    warden.location("cache", root, layout="hub")
    warden.write()
    name = f"models--o--m@{A.decode()}"
    assert warden("pin", f"{root}/{name}").status == 0
    first = warden.once().only
    assert [each["entry"] for each in first["evicted"]] == [f"models--o--m@{B.decode()}"]
    assert {each["entry"]: each["reason"] for each in first["spared"]} == {name: "pinned"}
    assert warden.once().evicted == []  # it is called `models--o--m` now
    assert os.path.exists(f"{repo}/snapshots/{A.decode()}")
    assert warden("unpin", f"{root}/{name}").status == 0
    assert warden.once().evicted == ["models--o--m"]
