"""Events from the HTTP server to the page: one command over history, as a service and again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import barnabas
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.definition import TRACKING
from tests.kit.processes.track_server import SHOP, Tracking, tracking
from tests.pipeline.run_command import Command, running_command

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

PATIENCE_S = 120
STARTED_MS = time.time_ns() // 1_000_000


def send(server: Tracking, ids: range, name: str = "pageview") -> None:
    events = [
        {
            "id": f"event-{number:06}",
            "time": STARTED_MS + number,
            "name": name,
            "url": f"{SHOP}/basket",
            "visitor": f"visitor-{number % 5}",
        }
        for number in ids
    ]
    answer = server.send(*events)
    assert answer.status == 200, answer


def accounts_of(command: Command) -> Accounts:
    return read_accounts(Snapshot(command.out / "tables", TRACKING))[0]


def test_bt_3_bt_4_events_become_tables_once(tmp_path: Path) -> None:
    """BT-1, BT-3, BT-4: a run, a service that is killed, and a run again have each event once."""
    options = ["--pipeline", "events", "--no-input", "--funnel", "Order: /basket > purchase"]
    options += ["--goal", "Bought: purchase"]
    with (
        barnabas.Broker() as broker,
        running_command(tmp_path / "out", tmp_path) as command,
    ):
        options += ["--bootstrap-servers", broker.bootstrap_servers]
        with tracking(broker.bootstrap_servers) as server:
            send(server, range(100))
            send(server, range(100, 110), "purchase")
        run = command.start(*options)
        output, errors = run.communicate(timeout=PATIENCE_S * 3)
        assert run.returncode == 0, errors
        assert "funnel      Order: /basket 5 > purchase 5 (100.0%)\n" in output
        assert "goal        Bought: 10 times, by 5 visitors (100%)\n" in output
        assert accounts_of(command) == Accounts(110, 110, 0, 0)

        # A server that was killed has forgotten which events it has already stored.
        service = command.start("--service", *options)
        with tracking(broker.bootstrap_servers) as server:
            send(server, range(50, 150))
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
