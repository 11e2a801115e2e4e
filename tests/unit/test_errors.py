"""The rows of Kafka's errors, against kio's table of them."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from barnabas.errors import (
    BarnabasError,
    InvalidTopic,
    KafkaError,
    NotController,
    UnknownServerError,
    error_for_code,
)

LAST_OF_KAFKA_3_9 = 127


@pytest.mark.parametrize(
    "row", [row for row in ErrorCode if row != 0 and row <= LAST_OF_KAFKA_3_9], ids=str
)
def test_every_error_of_kafka_3_9_has_its_row(row: ErrorCode) -> None:
    error = error_for_code(row.value)
    assert error.code == row.value
    assert error.name == row.name.upper()
    assert error.retriable == row.retriable
    assert error.meaning.endswith(".")


def test_codes_are_unique() -> None:
    codes = [error.code for error in KafkaError.__subclasses__()]
    assert len(codes) == len(set(codes)) == LAST_OF_KAFKA_3_9 + 1


def test_a_code_from_the_future_is_an_unknown_server_error() -> None:
    assert error_for_code(30_000) is UnknownServerError


def test_success_is_no_error() -> None:
    with pytest.raises(AssertionError):
        error_for_code(0)


def test_an_error_says_its_meaning_unless_given_a_message() -> None:
    assert str(NotController()) == NotController.meaning
    assert str(NotController("ask broker 2")) == "ask broker 2"
    assert isinstance(NotController(), BarnabasError)


def test_names_are_kafkas() -> None:
    assert NotController.name == "NOT_CONTROLLER"
    assert InvalidTopic.name == "INVALID_TOPIC_EXCEPTION"
