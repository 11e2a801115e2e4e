"""Evaluates the rules on the tables, sends due incidents, and records what was sent.

    tables/alerts.json   the incidents, and the status last sent to each sink
    tables/alerts.lock   held while an evaluation reads, sends and writes

The state is written each time a sink accepts an incident. After a crash, at most one incident is
therefore sent a second time, with the same id.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.errors import BarnabasError, ConfigError, in_one_line
from barnabas_pipeline.alerts.conditions import check_kinds, find_incidents
from barnabas_pipeline.alerts.incidents import Example, Incident, lines_of
from barnabas_pipeline.alerts.notices import Known, recipients, update
from barnabas_pipeline.alerts.rules import Rules
from barnabas_pipeline.alerts.sinks import Notice, SentInPart, Sink, SinkFailed, sink_of
from barnabas_pipeline.snapshot import Snapshot

_log = logging.getLogger(__name__)

_MOST_SENT: Final = 100
"""The maximum number of incidents sent to a sink per evaluation; the rest are sent in the next
evaluation.
"""


class Evaluation(NamedTuple):
    known: list[Known]
    sent: int
    failures: list[str]
    is_complete: bool
    """Whether everything due has been sent."""


class Watch:
    """Watches the tables in a directory for alerts."""

    def __init__(self, rules: Rules, tables: Path, pipeline: str) -> None:
        """Raises `ConfigError` if the rules do not fit the tables, or if a secret is missing.

        `pipeline`: the pipeline's name, as in its definition.
        """
        check_kinds(rules, pipeline)
        self._rules = rules
        self._tables = tables
        self._sinks: dict[str, Sink] = {each.name: sink_of(each) for each in rules.sinks}

    def evaluate(self, snapshot: Snapshot, clock: datetime) -> Evaluation:
        """Send everything that is due as of a snapshot.

        Raises `ConfigError` if another process is sending alerts, or if the state cannot be read.
        """
        with self._locked():
            known = load_state(self._tables)
            if (now := time_of(snapshot, clock)) is not None:
                found = find_incidents(snapshot, self._rules, now)
                before, known = known, update(known, found, self._rules, now)
                if known != before:
                    save_state(self._tables, known)
            return self._send(known, snapshot)

    def follow(self, snapshot: Snapshot, clock: datetime) -> Evaluation:
        """Evaluate the rules from within a service: log any failure instead of raising it, and
        retry at the next call.
        """
        try:
            found = self.evaluate(snapshot, clock)
        except (BarnabasError, OSError) as error:
            found = Evaluation([], 0, [in_one_line(error)], is_complete=False)
        for failure in found.failures:
            _log.warning("alerts: %s; will be retried later", failure)
        return found

    def _send(self, known: list[Known], snapshot: Snapshot) -> Evaluation:
        sent, failures, left = 0, [], False
        counts = dict.fromkeys(self._sinks, 0)
        # If an incident has begun and ended, send its end at the next evaluation. A sink that
        # briefly groups alerts then shows both.
        for number, each in enumerate(known):
            lines = None
            for name in recipients(each, self._rules):
                status = each.due(name)
                if status is None:
                    continue
                if counts[name] >= _MOST_SENT:
                    left = True
                    continue
                lines = lines_of(each.incident, snapshot) if lines is None else lines
                try:
                    self._sinks[name].send(Notice(each.incident, status, lines))
                except SinkFailed as error:
                    failures.append(f"sink {name!r}: {error}")
                    # The other incidents of this evaluation would hit the same timeout.
                    counts[name] = _MOST_SENT
                    left = True
                    continue
                except SentInPart as error:
                    failures.append(f"sink {name!r}: {error}")
                counts[name] += 1
                sent += 1
                known[number] = each = each.after_sending(name, status)
                save_state(self._tables, known)
                left = left or each.due(name) is not None
        return Evaluation(known, sent, failures, not left)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._tables / "alerts.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise ConfigError(
                f"another process is sending the alerts of {self._tables}: let only one send them"
            ) from None
        finally:
            os.close(descriptor)


def time_of(snapshot: Snapshot, clock: datetime) -> datetime | None:
    """Return the time of the newest line, or None if there are no lines.

    The result is never later than the current time; otherwise, a single line with a wrong date
    would make all components appear to be silent.
    """
    if snapshot.newest_s is None:
        return None
    return min(datetime.fromtimestamp(snapshot.newest_s, UTC), clock)


def load_state(tables: Path) -> list[Known]:
    """Return the known incidents, or an empty result if the file does not exist.

    Raises `ConfigError` if the file is damaged.
    """
    path = tables / "alerts.json"
    try:
        rows = json.loads(path.read_text("utf-8"))["incidents"]
        return [Known(_incident(row["incident"]), row["sent"]) for row in rows]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is damaged ({in_one_line(error)}): remove it; the current incidents are then "
            "sent again"
        ) from None


def save_state(tables: Path, known: list[Known]) -> None:
    """Replace the file atomically, so that a reader sees either the old incidents or the
    new ones.
    """
    path = tables / "alerts.json"
    rows = [{"incident": _row(each.incident), "sent": dict(each.sent)} for each in known]
    written = path.with_suffix(".new")
    with written.open("w", encoding="utf-8") as file:
        json.dump({"version": 1, "incidents": rows}, file)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    descriptor = os.open(tables, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # make the rename durable
    finally:
        os.close(descriptor)


def _row(incident: Incident) -> dict[str, Any]:
    example = incident.example._asdict()
    row = {**incident._asdict(), "example": example}
    for values in (row, example):
        for key, value in values.items():
            if isinstance(value, datetime):
                values[key] = value.isoformat()
    return row


def _incident(row: Mapping[str, Any]) -> Incident:
    example = {**row["example"]}
    # Files from earlier versions have no `paths`.
    for key in ("values", "paths"):
        example[key] = tuple(example.get(key, ()))
    for key in ("since", "until"):
        example[key] = _time(example[key])
    times = {"start": datetime.fromisoformat(row["start"]), "end": _time(row["end"])}
    return Incident(**{**row, **times, "example": Example(**example)})


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
