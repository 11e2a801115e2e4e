"""Sending what is due, over restarts and failures (LG-4)."""

from __future__ import annotations

import fcntl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_pipeline.alerts.rules import Rule, Rules, SinkOptions
from barnabas_pipeline.alerts.watch import Evaluation, Watch, load_state
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit.alert_receivers import WebReceiver, web_receiver
from tests.kit.pipeline.log_records import records, send, write

START = datetime(2026, 3, 12, 9, tzinfo=UTC)
CLOCK = datetime(2026, 3, 13, tzinfo=UTC)


class Service:
    """The tables of a log, and its alerts; each evaluation is that of a new process."""

    def __init__(self, directory: Path, receiver: WebReceiver, *more: str) -> None:
        self.directory = directory
        names = ("team", *more)
        self.rules = Rules(
            (Rule("errors", "rate", names, threshold=3, levels=("ERROR",)),),
            tuple(
                SinkOptions(name, "webhook", {"url": f"{receiver.url}/{name}"}) for name in names
            ),
            timedelta(days=1),
        )
        self._batches = self._lines = 0

    def write(self, *minutes: int) -> None:
        lines = [
            f"{START + timedelta(minutes=minute):%Y-%m-%d %H:%M:%S},000 ERROR [main]"
            f" jobs.Run: Job {minute} failed".encode()
            for minute in minutes
        ]
        batch = records("app.log", lines, 0, self._lines)
        write(Tables(self.directory, LOGS), self._batches, batch, send)
        self._batches, self._lines = self._batches + 1, self._lines + len(lines)

    def evaluate(self) -> Evaluation:
        watch = Watch(self.rules, self.directory, "logs")
        return watch.evaluate(Snapshot(self.directory, LOGS), CLOCK)


def statuses(receiver: WebReceiver, path: str = "/team") -> list[str]:
    return [each.body["status"] for each in receiver.posts if each.path == path]


@pytest.mark.thorough
def test_lg_4_once_over_restarts(tmp_path: Path) -> None:
    """LG-4: firing once and resolved once, whichever process evaluates."""
    with web_receiver() as receiver:
        service = Service(tmp_path, receiver)
        service.write(1, 2)
        assert service.evaluate().sent == 0
        service.write(3)
        assert [service.evaluate().sent for _ in range(3)] == [1, 0, 0]
        service.write(4)
        assert service.evaluate().sent == 0, "it goes on"
        service.write(60)
        assert [service.evaluate().sent for _ in range(3)] == [1, 0, 0]
        assert statuses(receiver) == ["firing", "resolved"]
        assert len({each.body["id"] for each in receiver.posts}) == 1
        texts = [each["text"] for each in receiver.posts[0].body["lines"]]
        assert [text[-12:] for text in texts] == [f"Job {number} failed" for number in (1, 2, 3)]


@pytest.mark.thorough
def test_lg_4_history_gives_the_incidents_of_the_service(tmp_path: Path) -> None:
    """LG-4: time is that of the lines, so their identities are equal."""
    with web_receiver() as receiver:
        service = Service(tmp_path / "service", receiver)
        for minute in (1, 2, 3, 4, 60, 70):
            service.write(minute)
            service.evaluate()
        backfill = Service(tmp_path / "backfill", receiver)
        backfill.write(1, 2, 3, 4, 60, 70)
        first = backfill.evaluate()
        assert (first.sent, first.is_complete) == (1, False), "the end is sent the next time"
        assert backfill.evaluate().is_complete
    served, filled = (
        [(each.incident.id, each.incident.end, each.sent) for each in load_state(directory)]
        for directory in (tmp_path / "service", tmp_path / "backfill")
    )
    assert served == filled
    assert statuses(receiver) == ["firing", "resolved"] * 2


def test_lg_4_a_failure_is_retried(tmp_path: Path) -> None:
    """LG-4: at the next evaluation, also after a restart; other sinks do not get it again."""
    with web_receiver() as down, web_receiver() as receiver:
        service = Service(tmp_path, receiver, "other")
        broken = SinkOptions("other", "webhook", {"url": f"{down.url}/other"})
        down.status = 503
        team, _ = service.rules.sinks
        service.rules = service.rules._replace(sinks=(team, broken))
        service.write(1, 2, 3)
        for _ in range(2):
            found = service.evaluate()
            assert not found.is_complete
            assert found.failures == [f"sink 'other': {down.url}/... answered 503"]
        down.status = 200
        assert service.evaluate().is_complete
        assert (len(down.posts), statuses(receiver)) == (3, ["firing"])


def test_lg_4_a_crash_between_sending_and_saving(tmp_path: Path) -> None:
    """LG-4: one incident is sent twice, under the same key."""
    with web_receiver() as receiver:
        service = Service(tmp_path, receiver)
        service.write(1, 2, 3)
        service.evaluate()
        (tmp_path / "alerts.json").unlink()
        service.evaluate()
    first, second = receiver.posts
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


def test_ux_4_a_damaged_state(tmp_path: Path) -> None:
    with web_receiver() as receiver:
        service = Service(tmp_path, receiver)
        service.write(1, 2, 3)
        (tmp_path / "alerts.json").write_text('{"incidents": [{}]}')
        with pytest.raises(ConfigError, match=r"alerts\.json is damaged .*: remove it; "):
            service.evaluate()
        watch = Watch(service.rules, tmp_path, "logs")
        found = watch.follow(Snapshot(tmp_path, LOGS), CLOCK)
        assert not found.is_complete and "is damaged" in found.failures[0]


def test_ux_4_two_processes(tmp_path: Path) -> None:
    with web_receiver() as receiver, (tmp_path / "alerts.lock").open("w") as lock:
        service = Service(tmp_path, receiver)
        service.write(1, 2, 3)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another process is sending the alerts of"):
            service.evaluate()


@pytest.mark.thorough
def test_lg_4_a_line_of_the_future(tmp_path: Path) -> None:
    """LG-4: it does not end an incident."""
    with web_receiver() as receiver:
        service = Service(tmp_path, receiver)
        service.write(24 * 60 - 60 * 9 - 3, 24 * 60 - 60 * 9 - 2, 24 * 60 - 60 * 9 - 1)
        service.write(60 * 24 * 30)
        assert service.evaluate().sent == 1
    assert statuses(receiver) == ["firing"]
