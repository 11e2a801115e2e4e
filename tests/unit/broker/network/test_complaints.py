"""Log lines about peers: once per address, reason and minute."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.network.complaints import LINES, LINES_PER_ADDRESS, Complaints
from barnabas.clock import SystemClock
from tests.kit.set_clock import SetClock


def test_a_reason_is_said_once_per_address(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("test"), SystemClock())
    for port in range(3):
        complaints.report(("10.0.0.1", port), "connection closed", "too large")
    complaints.report(("10.0.0.2", 7), "connection closed", "too large")
    complaints.report(("10.0.0.1", 8), "connection closed", "another reason")
    assert [record.getMessage() for record in caplog.records] == [
        "connection closed from 10.0.0.1:0: too large",
        "connection closed from 10.0.0.2:7: too large",
        "connection closed from 10.0.0.1:8: another reason",
    ]


def test_what_one_address_or_all_of_them_cause_has_a_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A stranger has as many faults as it likes, and with IPv6 as many addresses."""
    clock = SetClock()
    complaints = Complaints(logging.getLogger("test"), clock)
    for number in range(1500):
        complaints.report(("10.0.0.1", 1), "closed", f"reason {number}")
    assert len(caplog.records) == LINES_PER_ADDRESS
    for number in range(1500):
        complaints.report((f"10.1.{number // 256}.{number % 256}", 1), "closed", "x")
    assert len(caplog.records) == LINES
    clock.at_ms += 60_000
    complaints.report(("10.0.0.1", 1), "closed", "reason 0")
    assert [record.getMessage() for record in caplog.records[LINES:]] == [
        f"suppressed {2 * 1500 - LINES:,} further messages about connections in the last minute",
        "closed from 10.0.0.1:1: reason 0",
    ]


def test_a_reason_stays_on_its_line(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("test"), SystemClock())
    complaints.report(("10.0.0.1", 1), "closed", "a\nb\x1b[2J")
    assert caplog.records[0].getMessage() == r"closed from 10.0.0.1:1: a\nb\x1b[2J"


def test_a_bug_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("test"), SystemClock())
    for _ in range(3):
        error = ValueError("ours")
        complaints.report(("10.0.0.1", 1), "failed", error, level=logging.ERROR, bug=error)
    (record,) = caplog.records
    assert record.exc_info
