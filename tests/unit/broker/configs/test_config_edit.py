"""What the two ways to alter configs make of the settings that are there (KIP-339)."""

from __future__ import annotations

import pytest

from barnabas.broker.configs.config_edit import Change, Operation, increments, replacement
from barnabas.config import TOPIC_KEYS, ConfigKey
from barnabas.errors import InvalidConfig, InvalidRequest, KafkaError

SET, DELETE, APPEND, SUBTRACT = Operation


def key_of(name: str) -> ConfigKey:
    if name not in TOPIC_KEYS:
        raise InvalidConfig(f"no {name}")
    return TOPIC_KEYS[name]


def edited(current: dict[str, str], *changes: tuple[str, int, str | None]) -> dict[str, str]:
    return increments([Change(*change) for change in changes], key_of)(current)


def test_single_settings_are_changed_and_the_others_stay() -> None:
    current = {"retention.ms": "1", "segment.bytes": "2"}
    assert edited(current, ("retention.ms", SET, "9")) == {
        "retention.ms": "9",
        "segment.bytes": "2",
    }
    assert edited(current, ("retention.ms", DELETE, None)) == {"segment.bytes": "2"}
    assert edited(current, ("flush.ms", DELETE, None)) == current
    assert edited(current, ("no.such", DELETE, None)) == current, "as Kafka 3.9.1 answered"
    assert current == {"retention.ms": "1", "segment.bytes": "2"}


@pytest.mark.parametrize(
    ("current", "operation", "items", "wanted"),
    [
        (None, APPEND, "compact", "delete,compact"),  # from the default
        (None, SUBTRACT, "delete", ""),
        ("compact", APPEND, "delete", "compact,delete"),
        ("compact", APPEND, "compact", "compact"),
        ("", APPEND, "compact", "compact"),
        ("compact, delete", SUBTRACT, "delete", "compact"),
        ("compact", SUBTRACT, "delete", "compact"),
        ("delete", APPEND, "compact,compact, delete", "delete,compact"),
    ],
)
def test_lists_are_edited(
    current: str | None, operation: Operation, items: str, wanted: str
) -> None:
    """As Kafka 3.9.1 answered to the same."""
    before = {} if current is None else {"cleanup.policy": current}
    assert edited(before, ("cleanup.policy", operation, items)) == {"cleanup.policy": wanted}


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        (
            [("retention.ms", APPEND, "1")],
            InvalidConfig,
            "is not a list, so append is not possible",
        ),
        (
            [("retention.ms", SUBTRACT, "1")],
            InvalidConfig,
            "is not a list, so subtract is not possible",
        ),
        ([("retention.ms", SET, None)], InvalidRequest, "null"),
        ([("cleanup.policy", APPEND, None)], InvalidRequest, "null"),
        ([("retention.ms", 9, "1")], InvalidRequest, "operation 9"),
        ([("retention.ms", -1, "1")], InvalidRequest, "operation -1"),
        ([("flush.ms", SET, "1"), ("flush.ms", DELETE, "")], InvalidRequest, "more than once"),
        ([("no.such", SET, "1")], InvalidConfig, "no no.such"),
        ([("no.such", APPEND, "1")], InvalidConfig, "no no.such"),
    ],
)
def test_what_cannot_be_asked(
    changes: list[tuple[str, int, str | None]], error: type[KafkaError], said: str
) -> None:
    """UX-4"""
    with pytest.raises(error, match=said):
        edited({}, *changes)


def test_an_unknown_setting_can_be_removed_where_it_is_set() -> None:
    """Another version may have left it."""
    assert edited({"no.such": "1"}, ("no.such", DELETE, None)) == {}


def test_a_replacement_leaves_nothing_else() -> None:
    edit = replacement([("flush.ms", "1")])
    assert edit({"retention.ms": "1", "flush.ms": "2"}) == {"flush.ms": "1"}
    assert replacement([])({"retention.ms": "1"}) == {}
    with pytest.raises(InvalidRequest, match="more than once"):
        replacement([("flush.ms", "1"), ("flush.ms", "1")])
    with pytest.raises(InvalidRequest, match="null"):
        replacement([("flush.ms", None)])
