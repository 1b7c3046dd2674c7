"""What a user of Hugging Face datasets runs: load files, map, filter, save, load again.

Run as a script with a directory for source files and a list of what to do; the cache is where the
environment says. It does not know cachewarden; the tests run it as a process of its own. Each task
prints one line of JSON: `digests` of the contents, `files` that they lie in.

- `load`: two sources, one of JSON lines and one of CSV;
- `map`: the JSON lines mapped, filtered, and mapped once more by two processes;
- `generate`: a dataset from a generator;
- `save`: the JSON lines saved with `save_to_disk` below the cache's directory of datasets;
- `hold`: load and map, print, then wait for standard input to end, and check the contents again;
- `slow`: a dataset from a generator that prints `{}` in the middle and waits for standard input to end;
- `hub`: `load_dataset` of the repository `org/data`.
"""

import hashlib
import json
import os
import sys

import datasets

ROWS = 2000


def _write_sources(directory: str) -> tuple[str, str]:
    lines, table = os.path.join(directory, "rows.jsonl"), os.path.join(directory, "rows.csv")
    if not os.path.exists(lines):  # its time is part of what a prepared dataset is found by
        with open(lines, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"n": n, "text": str(n) * 20}) + "\n" for n in range(ROWS))
        with open(table, "w", encoding="utf-8") as file:
            file.write("n,text\n" + "".join(f"{n},{n}\n" for n in range(ROWS)))
    return lines, table


def _double(row: dict) -> dict:
    return {"double": 2 * row["n"]}


def _triple(row: dict) -> dict:
    return {"triple": 3 * row["n"]}


def _is_even(row: dict) -> bool:
    return row["n"] % 2 == 0


def _rows():
    for n in range(10):
        yield {"n": n}


def _slow_rows():
    yield {"n": 0}
    print("{}", flush=True)
    sys.stdin.read()
    yield {"n": 1}


def _say(*found: datasets.Dataset) -> None:
    digests = [hashlib.sha256(json.dumps(each.to_dict()).encode()).hexdigest() for each in found]
    files = [file["filename"] for each in found for file in each.cache_files]
    print(json.dumps({"digests": digests, "files": files}), flush=True)


def _load(sources: str) -> list[datasets.Dataset]:
    lines, table = _write_sources(sources)
    return [
        datasets.load_dataset("json", data_files=lines, split="train"),
        datasets.load_dataset("csv", data_files=table, split="train"),
    ]


def _mapped(sources: str) -> list[datasets.Dataset]:
    rows = _load(sources)[0]
    return [rows.map(_double), rows.filter(_is_even), rows.map(_triple, num_proc=2)]


def main(sources: str, task: str) -> None:
    """Do one task."""
    datasets.disable_progress_bars()
    if task == "load":
        _say(*_load(sources))
    elif task == "map":
        _say(*_mapped(sources))
    elif task == "generate":
        _say(datasets.Dataset.from_generator(_rows))
    elif task == "slow":
        _say(datasets.Dataset.from_generator(_slow_rows))
    elif task == "save":
        rows = _load(sources)[0]
        rows.save_to_disk(os.path.join(datasets.config.HF_DATASETS_CACHE, "mine", "kept"))
        _say(rows)
    elif task == "hold":
        found = [*_load(sources), *_mapped(sources)]
        _say(*found)
        sys.stdin.read()
        _say(*found)
    elif task == "hub":
        _say(datasets.load_dataset("org/data", split="train"))


if __name__ == "__main__":
    for each in sys.argv[2:]:
        main(sys.argv[1], each)
