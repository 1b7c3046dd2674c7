"""Real torch.hub: weights that were evicted are downloaded again, and trust outlives its repository."""

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.accelerate,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None,
        reason="torch is not installed (requirements/accelerate.txt; CI installs it)",
    ),
]

LOAD = """
import sys, torch
print(torch.hub.load_state_dict_from_url(sys.argv[1], progress=False, check_hash=True)["w"].tolist())
"""


def run(code: str, home: Path, *arguments: str) -> str:
    """A program that uses torch, to its end; the last line that it printed."""
    environ = os.environ | {"TORCH_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().rpartition("\n")[2]  # after what torch says itself


def test_weights_that_were_evicted_are_downloaded_again(warden, root, tmp_path):
    """The hub's directory is recognised by what torch itself wrote into it."""
    run(
        "import sys, torch; torch.save({'w': torch.arange(3)}, sys.argv[1])",
        tmp_path,
        str(tmp_path / "w.pth"),
    )
    content = (tmp_path / "w.pth").read_bytes()
    name = f"model-{hashlib.sha256(content).hexdigest()[:8]}.pth"
    (tmp_path / name).write_bytes(content)
    home = Path(root)
    assert run(LOAD, home, f"file://{tmp_path}/{name}") == "[0, 1, 2]"
    warden.location("cache", str(home / "hub"))
    warden.policy = {"evict_all": True}
    done = warden.once()
    assert done.only["layout"] == "torch_hub"
    assert done.evicted == [f"checkpoints/{name}"]
    assert not (home / "hub/checkpoints" / name).exists()
    assert run(LOAD, home, f"file://{tmp_path}/{name}") == "[0, 1, 2]"


def test_a_repository_stays_unless_torch_trusts_it_without_its_directory(warden, root):
    """Asked of torch itself: would it load the repository again without a question?"""
    home = Path(root)
    for each in ("listed_repo_main", "pytorch_vision_main", "stranger_repo_main"):
        (home / "hub" / each).mkdir(parents=True)
        (home / "hub" / each / "hubconf.py").write_text("def answer():\n    return 42\n")
    (home / "hub/trusted_list").write_text("listed_repo\n")
    warden.location("cache", str(home / "hub"))
    warden.policy = {"evict_all": True}
    done = warden.once()
    assert sorted(done.evicted) == ["listed_repo_main", "pytorch_vision_main"]
    ask = """
import sys, torch.hub
owner, repo = sys.argv[1:]
torch.hub._check_repo_is_trusted(owner, repo, f"{owner}_{repo}_main", "check")
print("trusted")
"""
    for owner, repo in (("listed", "repo"), ("pytorch", "vision"), ("stranger", "repo")):
        assert run(ask, home, owner, repo) == "trusted"
