"""Causes of changes to topics, on their way through the metadata store (IN-1)."""

from __future__ import annotations

import pytest

from barnabas.broker.controller.topic_causes import (
    MOST_CAUSES,
    TopicCauses,
    deletion_key,
    growth_key,
)

ID = bytes(range(16))


def test_in_1_a_cause_is_taken_once_and_by_its_own_change() -> None:
    causes = TopicCauses()
    causes.note(ID, "created")
    causes.note(growth_key("t", 3), "grown")
    causes.note(deletion_key("t"), "deleted")
    causes.note(deletion_key("t"), "deleted again")
    causes.note(bytes(16), "")
    assert causes.take(growth_key("t", 4)) == causes.take(bytes(16)) == ""
    assert causes.take(deletion_key("t")) == "deleted"
    assert causes.take(growth_key("t", 3)) == "grown"
    assert (causes.take(ID), causes.take(ID)) == ("created", "")


def test_in_1_a_change_that_fails_leaves_no_cause_for_the_next_one() -> None:
    causes = TopicCauses()
    with pytest.raises(OSError, match="failed"), causes.noting([deletion_key("t")], "mine"):
        raise OSError("failed")
    assert causes.take(deletion_key("t")) == ""
    with causes.noting([deletion_key("t")], "mine"):
        pass
    assert causes.take(deletion_key("t")) == "mine"


def test_in_1_the_number_of_causes_is_limited() -> None:
    causes = TopicCauses()
    for number in range(MOST_CAUSES + 1):
        causes.note(deletion_key(f"t{number}"), "asked")
    assert causes.take(deletion_key("t0")) == ""
    assert causes.take(deletion_key("t1")) == "asked"
