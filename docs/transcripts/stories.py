"""The stories, played inside the booted machine by `docs.transcripts`. Writes /report.json."""

import json
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Callable

from docs.transcripts.teller import Teller, until

_FOUND = "/etc/cachewarden/config.d/found.toml"
_ALERTS = (
    'curl -s localhost:9090/api/v1/alerts | jq -r \'.data.alerts[] | select(.state == "firing") | '
    ".labels.alertname, .annotations.summary, .annotations.runbook'"
)
_LONGEST_ALERT_SECONDS = 15 * 60

_CONFIGURATION = """\
[policies.homes]
extends = "preset:workstation"
max_size = "{limit}"

[locations.huggingface-hub]
path = "/home/*/.cache/huggingface/hub"
policy = "homes"
ignore_ctime = true   # the backup that these homes were restored from renewed it
"""

# A hub cache as its library lays it out, by a process that ends: who makes an entry holds it while he lives.
_MODELS = """
import os, time
hub = "/home/anna/.cache/huggingface/hub"
for name, mebibytes, days in (("old-embedder", 40, 20), ("painter", 60, 12), ("chat-7b", 90, 1)):
    repo, commit, blob = f"{hub}/models--acme--{name}", f"{len(name):040x}", f"{days:064x}"
    for below in ("blobs", "refs", f"snapshots/{commit}"):
        os.makedirs(f"{repo}/{below}")
    with open(f"{repo}/blobs/{blob}", "wb") as file:
        file.write(os.urandom(mebibytes << 20))
    os.symlink(f"../../blobs/{blob}", f"{repo}/snapshots/{commit}/model.safetensors")
    with open(f"{repo}/refs/main", "w") as file:
        file.write(commit)
    then = time.time() - days * 86400
    for at, _, files in os.walk(repo, topdown=False):
        for each in (*(f"{at}/{file}" for file in files), at):
            os.utime(each, (then, then), follow_symlinks=False)
"""


def install(tell: Teller) -> None:
    """From a checkout to a service that reports."""
    tell.say("From a checkout, on a machine whose user anna has three models in her hub cache:")
    with open("/installed", encoding="utf-8") as file:
        tell.show("sudo make install", file.read())
    tell.say(
        "The service is up and idle: the configuration that was installed names no location. What is there? "
        "Each proposal says `enforce = false`."
    )
    tell.run(f"sudo cachewarden discover -o {_FOUND}")
    tell.run(f"cat {_FOUND}")
    tell.say("The proposal is a file like any other. Is all of it right, together?")
    tell.run("sudo cachewarden config check")
    tell.say("Then the service may have it. It only reports, as the proposal says:")
    tell.run("sudo systemctl reload cachewarden")
    until(lambda: _location()["last_pass"], 30)
    tell.run("systemctl show cachewarden -p UnitFileState -p ActiveState -p StatusText")
    tell.run("sudo cachewarden status")


def reload(tell: Teller) -> None:
    """A configuration that is wrong: who says so, and mending it."""
    tell.say("There is to be a limit of 500 GiB, and a hand slips.")
    tell.edit(_FOUND, _CONFIGURATION.format(limit="500Gib"))
    tell.say("`systemctl reload` sends a signal, and cannot say what became of it:")
    tell.run("sudo systemctl reload cachewarden")
    until(lambda: "stays in force" in _journal(), 30)
    tell.say("`status` can:")
    tell.run("sudo cachewarden status", 2)
    tell.say("So can the journal, and that the configuration from before stays in force:")
    tell.run("journalctl -u cachewarden -o cat --no-pager -g configuration -n 1")
    tell.say("And the metrics, for whoever does not look:")
    tell.run("curl -s localhost:9843/metrics | grep ^cachewarden_config_last_reload_successful")
    _fires("CachewardenReloadFailed")
    tell.say("Five minutes later Prometheus has a ticket for somebody, with the page to follow:")
    tell.run(_ALERTS)
    tell.say(
        "[That page](runbooks/reload-failed.md) says: `cachewarden config check` until it says `OK`, then "
        "reload."
    )
    tell.run("sudo cachewarden config check", 2)
    tell.run(f"sudo sed -i s/500Gib/500GiB/ {_FOUND}")
    tell.run("sudo cachewarden config check && systemctl reload cachewarden")
    _ends("CachewardenReloadFailed")
    until(lambda: _location()["limit_bytes"], 30)
    tell.say("The alert has ended, and the limit is in force. It is the same process, which forgot nothing.")
    tell.run(_ALERTS)
    tell.run("sudo cachewarden status")


def alert(tell: Teller) -> None:
    """A limit that is a slip, stopped by `max_share`, and the runbook of its alert."""
    tell.say(
        "The limit is to be 170 MiB, for which the oldest model would have to go. But a digit is missing:"
    )
    tell.run(f"sudo sed -i s/500GiB/17MiB/ {_FOUND}")
    tell.run("sudo cachewarden config check && systemctl reload cachewarden")
    _fires("CachewardenWaitingForConfirmation")
    tell.say("Ten minutes later:")
    tell.run(_ALERTS)
    tell.say(
        "[The page](runbooks/waiting-for-confirmation.md) says what that means: a pass would have removed "
        "more than `max_share` of the location, evicted up to that, and stopped. It asks for two looks. What "
        "would go?"
    )
    tell.run("sudo cachewarden plan --location huggingface-hub")
    tell.say("And which limits are in force, and which line do they come from?")
    tell.run("sudo cachewarden config show | grep found.toml")
    tell.say(
        "17 MiB is nobody's wish. Then, says the page, mend the configuration and reload. What did not go "
        "stays, and the alert ends by itself."
    )
    tell.run(f"sudo sed -i s/17MiB/170MiB/ {_FOUND}")
    tell.run("sudo cachewarden config check && systemctl reload cachewarden")
    _ends("CachewardenWaitingForConfirmation")
    tell.run(_ALERTS)
    tell.run("sudo cachewarden status")
    tell.say("And what went meanwhile:")
    tell.run("sudo cachewarden history")


def _location() -> dict[str, object]:
    """The one location, as `status` has it, or without anything while there is no answer."""
    command = ("cachewarden", "status", "--json")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, object] = json.loads(done.stdout)["locations"][0]
    return found


def _journal() -> str:
    command = ("journalctl", "-u", "cachewarden", "-o", "cat", "--no-pager")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _alerts() -> dict[str, str]:
    with urllib.request.urlopen("http://localhost:9090/api/v1/alerts", timeout=10) as answer:
        return {each["labels"]["alertname"]: each["state"] for each in json.load(answer)["data"]["alerts"]}


def _fires(name: str) -> None:
    until(lambda: _alerts().get(name) == "firing", _LONGEST_ALERT_SECONDS)


def _ends(name: str) -> None:
    until(lambda: name not in _alerts(), 60)


_VERSIONS = (
    "cachewarden --version",
    "systemctl --version | head -n 1 | cut -d ' ' -f 1-2",
    "prometheus --version 2>&1 | head -n 1 | cut -d ' ' -f 1,3 | tr -d ,",
    ". /etc/os-release; echo $PRETTY_NAME",
)


def _version(command: str) -> dict[str, str]:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    return {"said": done.stdout.strip()}


STORIES: dict[str, Callable[[Teller], None]] = {
    "A fresh install": install,
    "A reload gone wrong": reload,
    "An alert and its runbook": alert,
}


def main() -> None:
    """All stories; what went wrong instead of the rest of them."""
    # fanotify tells of no file handles on an overlay, which everything else here lies on.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1G,mode=755", "none", "/home"], check=True)
    subprocess.run([sys.executable, "-c", _MODELS], check=True)
    subprocess.run(["chown", "-R", "anna:", "/home/anna"], check=True)
    report: dict[str, object] = {"versions": [_version(command) for command in _VERSIONS]}
    watcher = subprocess.Popen(
        ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/run/tsdb"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for title, story in STORIES.items():
            tell = Teller()
            report[title] = tell.steps
            story(tell)
    except Exception:  # noqa: BLE001 - whatever it is, the page is not written
        report["wrong"] = f"{json.dumps(report, indent=1)}\n{traceback.format_exc()}\n{_journal()}"
    finally:
        watcher.terminate()
        watcher.wait(30)
    with open("/report.json", "w", encoding="utf-8") as file:
        json.dump(report, file)


if __name__ == "__main__":
    main()
