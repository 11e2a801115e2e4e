"""Log lines about peers: once per address, reason and minute."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.network.complaints import Complaints
from barnabas.clock import SystemClock


def test_a_reason_is_said_once_per_address(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("test"), SystemClock())
    for port in range(3):
        complaints.about(("10.0.0.1", port), "connection closed", "too large")
    complaints.about(("10.0.0.2", 7), "connection closed", "too large")
    complaints.about(("10.0.0.1", 8), "connection closed", "another reason")
    assert [record.getMessage() for record in caplog.records] == [
        "connection closed from 10.0.0.1:0: too large",
        "connection closed from 10.0.0.2:7: too large",
        "connection closed from 10.0.0.1:8: another reason",
    ]


def test_what_is_remembered_has_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("test"), SystemClock())
    for number in range(1500):
        complaints.about((f"10.0.{number // 256}.{number % 256}", 1), "closed", "x")
    complaints.about(("10.0.0.0", 2), "closed", "x")  # long forgotten
    assert len(caplog.records) == 1501
