"""UX-2, UX-4: the arguments of `configs alter`, in Kafka's notation."""

from __future__ import annotations

import pytest

from barnabas.cli.configs.changes import BadChange, operations, parse_names, parse_pairs
from barnabas.client.admin.configs import ConfigOperation, ConfigOperationType


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("retention.ms=1000", {"retention.ms": "1000"}),
        ("a=1, b = 2 ,c=", {"a": "1", "b": "2", "c": ""}),
        ("cleanup.policy=[compact,delete],a=1", {"cleanup.policy": "compact,delete", "a": "1"}),
        ("a=[]", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1,a=2", {"a": "2"}),
    ],
)
def test_pairs(text: str, pairs: dict[str, str]) -> None:
    assert parse_pairs([text], "--add") == pairs


@pytest.mark.parametrize("text", ["", "retention.ms", "=1", "a=1,,b=2", "a=[1,2", "a=1]"])
def test_what_is_no_pair_is_named(text: str) -> None:
    with pytest.raises(BadChange):
        parse_pairs([text], "--add")


def test_names() -> None:
    assert parse_names(["a,b", "a"], "--delete") == ["a", "b"]
    for text in ("", "a=1", "a,,b"):
        with pytest.raises(BadChange, match="not the name of a config"):
            parse_names([text], "--delete")


def test_every_option_is_an_operation() -> None:
    assert operations(["a=1"], ["b"], ["c=[x,y]"], ["d=z"]) == [
        ConfigOperation("a", ConfigOperationType.SET, "1"),
        ConfigOperation("c", ConfigOperationType.APPEND, "x,y"),
        ConfigOperation("d", ConfigOperationType.SUBTRACT, "z"),
        ConfigOperation("b", ConfigOperationType.DELETE),
    ]


def test_a_config_is_changed_in_one_way() -> None:
    with pytest.raises(BadChange, match="a cannot be changed in two ways"):
        operations(["a=1"], ["a"], [], [])
