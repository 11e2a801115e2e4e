"""Searches what the secured suites say for the planted passwords and keys.

Each look remembers where one was found; the run ends with an error that names all places.
"""

from __future__ import annotations

import functools
import mmap
import os
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from barnabas.client import ConfigResource, SyncAdmin
from barnabas.client.admin.configs import BROKER
from tests.kit.secured.suite import suite

# Settings that the kit wrote for brokers of Kafka's, and what `--secure` keeps.
_MAY_HAVE_THEM = ("server.properties", "consumer.properties", "secure/")
_PATIENCE_S = 30.0

places: list[str] = []
looks: dict[str, int] = {}
"""How much was searched, by kind."""


def look(kind: str, where: str, said: bytes | str | mmap.mmap) -> None:
    looks[kind] = looks.get(kind, 0) + 1
    for number, secret in enumerate(suite().planted):
        is_there = secret in said if isinstance(said, str) else said.find(secret.encode()) >= 0
        if is_there:
            test = os.environ.get("PYTEST_CURRENT_TEST", "between tests")
            places.append(f"secret {number} is in {where} ({test})")


def look_into(directory: Path) -> None:
    """Everything below it: logs, data, snapshots, what tests have written."""
    for path in directory.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        if path.name in _MAY_HAVE_THEM or f"{path.parent.name}/" in _MAY_HAVE_THEM:
            continue
        with path.open("rb") as file:
            if path.stat().st_size:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    look("files", str(path), content)


def look_at_processes() -> None:
    """Titles and environments of all that runs: what was started here is among it."""
    for part in ("cmdline", "environ"):
        for path in Path("/proc").glob(f"[0-9]*/{part}"):
            with suppress(OSError):  # it has ended, or is another user's
                look("processes", str(path), path.read_bytes())


def look_at_broker(broker_id: str, servers: str, metrics_port: int) -> None:
    """What it answers about its configs, and its metrics."""
    with SyncAdmin(servers) as admin:
        entries = admin.describe_configs(ConfigResource(BROKER, broker_id))
        assert any(entry.is_sensitive for entry in entries)
        look("config answers", f"configs of broker {broker_id}", repr(entries))
    page = f"http://127.0.0.1:{metrics_port}/metrics"
    with urllib.request.urlopen(page, timeout=_PATIENCE_S) as opened:
        look("metrics", page, opened.read())


def listen_to_commands() -> None:
    """Search what every command has printed that a test or the kit runs to its end."""
    original: Any = subprocess.run

    @functools.wraps(original)
    def run(*words: Any, **named: Any) -> Any:
        done = original(*words, **named)
        for said in (done.stdout, done.stderr):
            if said:
                look("commands", f"the output of {done.args}", said)
        return done

    setattr(subprocess, "run", run)  # noqa: B010  (its type is not to change)
