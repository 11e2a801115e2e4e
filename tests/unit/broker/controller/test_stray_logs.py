"""No topic is created automatically over a log that the metadata does not know (TP-6)."""

from __future__ import annotations

import pytest

from barnabas.broker.controller.stray_logs import StrayLogs
from barnabas.types import TopicPartition

OLD = [TopicPartition("old", number) for number in range(5)]


def test_only_what_was_unknown_at_the_start_is_refused_and_only_while_it_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs: dict[TopicPartition, object] = dict.fromkeys([*OLD, TopicPartition("known", 0)])
    strays = StrayLogs(logs)
    strays.add(OLD)
    assert strays.refusal("known") is None and strays.refusal("new") is None
    for _ in range(3):
        refusal = strays.refusal("old")
        assert refusal is not None and "(old-0, old-1, old-2 ...)" in str(refusal)
    assert caplog.text.count("not created automatically") == 1
    for name in OLD:
        assert strays.refusal("old") is not None
        del logs[name]  # an administrator had the topic created
    assert strays.refusal("old") is None
