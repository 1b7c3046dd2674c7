"""What a user of Accelerate runs: a model offloaded to disk, a training checkpoint, a compiled model.

Run as a script with the cache root (a `.accelerate` directory) and a list of what to do. It does not
know cachewarden; the tests run it as a process of its own, as any framework's program.

- `offload`: a model whose weights live in `offload/tiny`; then one line of standard input after the
  other asks for a forward pass, and each is answered with `same` when the result is the one that
  the model gave before it was offloaded;
- `checkpoint`: a training step and `save_state` into `checkpoints/checkpoint_0`; prints the weights' sum;
- `resume`: `load_state` from there; prints the weights' sum;
- `compile`: `torch.compile` with its cache under `inductor`, and one call.
"""

import os
import sys

import torch
from accelerate import Accelerator, disk_offload
from accelerate.utils import ProjectConfiguration

WIDTH = 256


def _model() -> torch.nn.Sequential:
    torch.manual_seed(7)
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers)


def offload(root: str) -> None:
    """Offload a model, then run it once for each line of standard input."""
    model = _model().eval()
    sample = torch.ones(1, WIDTH)
    with torch.no_grad():
        expected = model(sample)
        disk_offload(model, offload_dir=os.path.join(root, "offload", "tiny"), execution_device="cpu")
        print("ready", flush=True)
        for _ in sys.stdin:
            print("same" if torch.equal(model(sample), expected) else "different", flush=True)


def _trained(root: str) -> tuple[Accelerator, torch.nn.Module]:
    configuration = ProjectConfiguration(project_dir=root, automatic_checkpoint_naming=True)
    accelerator = Accelerator(cpu=True, project_config=configuration)
    model = _model()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    loss = model(torch.ones(1, WIDTH)).sum()
    accelerator.backward(loss)
    optimizer.step()
    return accelerator, model


def _weight(model: torch.nn.Module) -> str:
    return f"{sum(each.double().sum().item() for each in model.parameters()):.12f}"


def checkpoint(root: str) -> None:
    """Train one step and save it."""
    accelerator, model = _trained(root)
    accelerator.save_state()
    print("weight", _weight(model), flush=True)


def resume(root: str) -> None:
    """Load what `checkpoint` saved."""
    accelerator, model = _trained(root)
    with torch.no_grad():
        for each in model.parameters():
            each.zero_()
    accelerator.load_state()
    print("weight", _weight(model), flush=True)


def compiled(root: str) -> None:
    """Compile a model; its kernels go to `inductor`."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(root, "inductor")
    model = torch.compile(_model().eval())
    with torch.no_grad():
        print("shape", tuple(model(torch.ones(1, WIDTH)).shape), flush=True)


if __name__ == "__main__":
    where, *tasks = sys.argv[1:]
    for task in tasks:
        {"offload": offload, "checkpoint": checkpoint, "resume": resume, "compile": compiled}[task](where)
