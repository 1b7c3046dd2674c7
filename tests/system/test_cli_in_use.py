"""What processes use stays, whatever hides them: no descriptor, another namespace, an overlay."""

import os

import pytest
from tests.system.trees import age, fill, holding_lock, holding_mapped, holding_open, in_own_mounts, process


def _two(root: str) -> None:
    """m is the least recently used, n was used yesterday; 2 MiB each."""
    fill(f"{root}/m/model.safetensors", 2)
    fill(f"{root}/n/f", 2)
    age(f"{root}/m", 30)
    age(f"{root}/n", 1)


@pytest.mark.parametrize("holding", [holding_open, holding_mapped], ids=["open", "mapped, descriptor closed"])
def test_a_used_entry_stays_and_the_next_one_goes_until_its_process_has_ended(warden, root, holding):
    """The report names the process; after its end the same entry may go."""
    _two(root)
    warden.policy |= {"max_size": "3MiB", "target_size": "100%"}
    with holding(f"{root}/m/model.safetensors") as process:
        age(f"{root}/m", 30)  # mapping a file is a use, and moved its access time
        done = warden.once()
        assert done.evicted == ["n"]
        assert done.kept["m"] == "in_use"
        (spared,) = [each for each in done.only["spared"] if each["entry"] == "m"]
        assert process.pid in [holder["pid"] for holder in spared["holders"]]
        assert os.path.getsize(f"{root}/m/model.safetensors") == 2 * 2**20
    warden.policy["max_size"] = "1MiB"
    assert warden.once().evicted == ["m"]


def test_a_plan_knows_used_entries_and_takes_the_next_one(warden, root):
    """`plan` looks at the processes once, and says so; `--probe` asks the kernel by lease."""
    _two(root)
    warden.policy |= {"max_size": "3MiB", "target_size": "100%"}
    with holding_open(f"{root}/m/model.safetensors"):
        for arguments, checked in (((), "proc"), (("--probe",), "lease")):
            planned = warden.plan(*arguments)
            assert planned.evicted == ["n"]
            assert planned.kept["m"] == "in_use"
            assert planned.only["in_use_checked"] == checked
    assert sorted(os.listdir(root)) == ["m", "n"]


@pytest.mark.root
def test_users_in_other_mount_namespaces_and_above_an_overlay_are_seen(needs_root, warden, root, tmp_path):
    """Their descriptors name paths that do not exist here; the overlay's even another inode."""
    for name, days in (("m", 30), ("o", 30), ("n", 1)):
        fill(f"{root}/{name}/f", 2)
        age(f"{root}/{name}", days)
    for name in ("up", "work", "merged"):
        os.mkdir(tmp_path / name)
    overlay = f"lowerdir={root}/o,upperdir={tmp_path}/up,workdir={tmp_path}/work"
    warden.policy |= {"max_size": "4MiB", "target_size": "100%"}
    with (
        in_own_mounts(f"mount --bind {root}/m /mnt; exec 9</mnt/f"),
        in_own_mounts(f"mount -t overlay overlay -o {overlay} {tmp_path}/merged; exec 9<{tmp_path}/merged/f"),
    ):
        done = warden.once()
        assert done.evicted == ["n"]
        assert set(done.kept) == {"m", "o"}
        assert set(done.kept.values()) <= {"in_use", "mountpoint"}
        assert sorted(os.listdir(root)) == ["m", "o"]


def test_a_process_that_stands_in_an_entry_keeps_it(warden, root):
    """A working directory holds no file open."""
    _two(root)
    warden.policy |= {"evict_all": True}
    with process(["sh", "-c", f"cd {root}/m; echo ready; read -r line"]):
        done = warden.once()
    assert done.evicted == ["n"]
    assert done.kept == {"m": "in_use"}


def test_a_held_lock_keeps_a_repository_and_an_abandoned_lock_file_does_not(warden, root):
    """The client leaves its lock files behind; only a lock that somebody holds means something."""
    for name in ("held", "stale"):
        fill(f"{root}/models--o--{name}/blobs/e")
        os.makedirs(f"{root}/models--o--{name}/snapshots")
        os.makedirs(f"{root}/.locks/models--o--{name}")
        with open(f"{root}/.locks/models--o--{name}/e.lock", "w", encoding="utf-8"):
            pass
    age(root, 9)
    lock = f"{root}/.locks/models--o--held/e.lock"
    inode = os.stat(lock).st_ino
    warden.policy |= {"evict_all": True}
    with holding_lock(lock):
        done = warden.once()
    assert done.evicted == ["models--o--stale"]
    assert done.kept == {"models--o--held": "locked"}
    assert os.stat(lock).st_ino == inode
