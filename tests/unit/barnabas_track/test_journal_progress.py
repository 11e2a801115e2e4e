"""BT-1: which troubles of a journal `/readyz` shows."""

from __future__ import annotations

import pytest

from barnabas.client.errors import Unreachable
from barnabas.errors import (
    BarnabasError,
    MessageTooLarge,
    NotLeaderOrFollower,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from barnabas_track.journal_outbox import STUCK_S, JournalProgress


@pytest.mark.parametrize(
    "error", [MessageTooLarge, TopicAuthorizationFailed, UnknownTopicOrPartition]
)
def test_a_refusal_is_shown_until_something_is_committed(error: type[BarnabasError]) -> None:
    progress = JournalProgress()
    progress.on_stored()
    progress.on_failure(error("topic events"))
    assert progress.trouble == "the brokers refuse the events of the journal: topic events"
    progress.on_committed()
    assert progress.trouble == ""
    progress.on_failure(error("topic events"))
    progress.on_all_sent()
    assert progress.trouble == ""


@pytest.mark.parametrize("error", [Unreachable, NotLeaderOrFollower])
def test_a_failure_that_passes_is_shown_only_after_a_while(error: type[BarnabasError]) -> None:
    now_s = 1_000.0
    progress = JournalProgress(lambda: now_s)
    progress.on_stored()
    progress.on_failure(error("no broker"))
    now_s += STUCK_S - 1
    progress.on_stored()
    assert progress.trouble == ""
    now_s += 1
    assert progress.trouble == "no event of the journal was sent within 300 s: no broker"
    progress.on_committed()
    assert progress.trouble == ""
    now_s += STUCK_S
    assert progress.trouble == (
        "no event of the journal was sent within 300 s: the brokers have not answered"
    )
    progress.on_all_sent()
    assert progress.trouble == ""


def test_an_idle_journal_has_no_trouble() -> None:
    now_s = 0.0
    progress = JournalProgress(lambda: now_s)
    progress.on_failure(Unreachable("no broker"))
    now_s += 10 * STUCK_S
    assert progress.trouble == ""
