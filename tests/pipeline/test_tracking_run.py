"""Events from the HTTP server to the page: one command over history, as a service and again."""

from __future__ import annotations

import json
import select
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import barnabas
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.definition import TRACKING
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.pipeline.run_command import Command, running_command

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

PATIENCE_S = 120
STARTED_MS = time.time_ns() // 1_000_000
SHOP = "https://shop.example"


@contextmanager
def track_server(servers: str) -> Iterator[str]:
    """A running server; its address."""
    words = [COMMAND, *with_settings(["track", "serve", "--port", "0"])]
    with subprocess.Popen(
        [*words, "--bootstrap-server", servers], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], PATIENCE_S)[0]
            yield process.stdout.readline().strip().rpartition(" ")[2]
        finally:
            process.kill()


def send(address: str, ids: range, name: str = "pageview", path: str = "/basket") -> None:
    events = [
        {
            "id": f"event-{number:06}",
            "time": STARTED_MS + number,
            "name": name,
            "url": f"{SHOP}{path}",
            "visitor": f"visitor-{number % 5}",
        }
        for number in ids
    ]
    request = urllib.request.Request(
        f"{address}v1/events",
        json.dumps({"events": events}).encode(),
        {"Content-Type": "application/json", "User-Agent": "Firefox/140.0"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        assert json.load(response)["accepted"] == len(events)


def accounts_of(command: Command) -> Accounts:
    return read_accounts(Snapshot(command.out / "tables", TRACKING))[0]


def test_bt_3_bt_4_events_become_tables_once(tmp_path: Path) -> None:
    """BT-1, BT-3, BT-4: a run, a service that is killed, and a run again have each event once."""
    options = ["--pipeline", "events", "--no-input", "--funnel", "Order: /basket > purchase"]
    with (
        barnabas.Broker() as broker,
        running_command(tmp_path / "out", tmp_path) as command,
    ):
        options += ["--bootstrap-servers", broker.bootstrap_servers]
        with track_server(broker.bootstrap_servers) as address:
            send(address, range(100))
            send(address, range(100, 110), "purchase")
        run = command.start(*options)
        output, errors = run.communicate(timeout=PATIENCE_S * 3)
        assert run.returncode == 0, errors
        assert "funnel      Order: /basket 5 > purchase 5 (100.0%)\n" in output
        assert accounts_of(command) == Accounts(110, 110, 0, 0)

        # A server that was killed has forgotten which events it has already stored.
        service = command.start("--service", *options)
        with track_server(broker.bootstrap_servers) as address:
            send(address, range(50, 150))
            command.until(lambda: accounts_of(command).read == 210)
        service.kill()
        service.communicate()

        again = command.start(*options)
        output, errors = again.communicate(timeout=PATIENCE_S * 3)
        assert again.returncode == 0, errors
        assert accounts_of(command) == Accounts(210, 150, 0, 60)
        ids = Snapshot(command.out / "tables", TRACKING).frame("events")["id"]
        assert sorted(ids) == [f"event-{number:06}" for number in range(150)]
        assert "Order" in (command.out / "report.html").read_text("utf-8")
