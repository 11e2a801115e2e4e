"""The log levels of a process, under Kafka's names."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from barnabas.broker.configs.broker_loggers import (
    ROOT,
    effective_levels,
    level_edit,
    logger_names,
    own_levels,
    set_levels,
)
from barnabas.broker.configs.config_edit import Change, Operation
from barnabas.errors import InvalidConfig, InvalidRequest

NAME = "barnabas.tests.loggers"
CHILD = f"{NAME}.child"


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    before = own_levels()
    logging.getLogger(CHILD)
    yield
    set_levels(before)


def changed(name: str, operation: int, value: str | None = None) -> dict[str, str]:
    return level_edit([Change(name, operation, value)])(own_levels())


def test_a_level_holds_for_the_loggers_below_until_it_is_deleted() -> None:
    set_levels(changed(NAME, Operation.SET, "DEBUG"))
    assert logging.getLogger(CHILD).isEnabledFor(logging.DEBUG)
    assert own_levels()[NAME] == effective_levels()[CHILD] == "DEBUG"
    assert CHILD not in own_levels()
    set_levels(changed(NAME, Operation.DELETE))
    assert NAME not in own_levels()
    assert effective_levels()[CHILD] == effective_levels()["barnabas"]


def test_other_libraries_are_not_listed() -> None:
    logging.getLogger("barnabasque")
    names = logger_names()
    assert names[0] == ROOT and {NAME, CHILD, "barnabas"} <= set(names)
    assert "barnabasque" not in names and "kazoo" not in names


@pytest.mark.parametrize(("number", "name"), [(1, "TRACE"), (15, "INFO"), (60, "FATAL")])
def test_a_level_between_those_of_kafka_has_the_next_name(number: int, name: str) -> None:
    logging.getLogger(NAME).setLevel(number)
    assert own_levels()[NAME] == name


def test_what_cannot_be_set_is_refused_and_nothing_changes() -> None:
    before = own_levels()
    with pytest.raises(InvalidConfig, match=r"Logger .*nowhere does not exist!"):
        changed("barnabas.nowhere", Operation.SET, "INFO")
    with pytest.raises(
        InvalidConfig, match="level of root to LOUD: it must be one of TRACE, DEBUG"
    ):
        changed(ROOT, Operation.SET, "LOUD")
    with pytest.raises(InvalidRequest, match="root logger is not allowed"):
        changed(ROOT, Operation.DELETE)
    with pytest.raises(InvalidRequest, match="set \\(0\\) or deleted \\(1\\)"):
        changed(NAME, Operation.APPEND, "INFO")
    assert own_levels() == before
