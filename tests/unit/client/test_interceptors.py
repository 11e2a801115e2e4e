"""PR-10: interceptors are found, called in order, and skipped where they fail."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.client.interceptors import (
    CONSUMER_METHODS,
    PRODUCER_METHODS,
    interceptor_classes,
)
from barnabas.client.producer.batch import ProducerRecord
from barnabas.errors import ConfigError

RECORD = ProducerRecord("t", b"v")


class Suffix:
    """Appends a letter to each value, and remembers what it was told."""

    def __init__(self, letter: bytes = b"!") -> None:
        self.letter = letter
        self.told: list[Any] = []

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=(record.value or b"") + self.letter)

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        self.told.append((metadata, error))

    def close(self) -> None:
        self.told.append("closed")


class Failing:
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise RuntimeError("no")

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        raise RuntimeError("no")

    def on_consume(self, records: list[int]) -> str:
        return "text"

    def close(self) -> None:
        raise RuntimeError("no")


def test_pr_10_interceptors_are_called_in_order() -> None:
    last = Suffix(b"2")
    interceptors = interceptor_classes([Suffix(b"1"), last], PRODUCER_METHODS)
    assert interceptors.on_send(RECORD).value == b"v12"
    interceptors.on_acknowledgement("metadata", None)
    interceptors.close()
    interceptors.close()
    assert last.told == [("metadata", None), "closed"]


def test_pr_10_one_that_raises_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    last = Suffix(b"2")
    interceptors = interceptor_classes([Failing(), last], PRODUCER_METHODS)
    with caplog.at_level(logging.ERROR):
        assert interceptors.on_send(RECORD).value == b"v2"
        interceptors.on_acknowledgement("metadata", None)
        assert interceptors.on_consume([1]) == [1], "text is not a list of records"
        interceptors.close()
    assert last.told == [("metadata", None), "closed"]
    for method in ("on_send", "on_acknowledgement", "on_consume", "close"):
        assert f"interceptor Failing.{method} failed and is skipped" in caplog.text


def test_pr_10_interceptors_are_given_in_every_form() -> None:
    module = __name__
    for given in (
        f"{module}:Suffix",
        f"{module}.Suffix",
        f"{module}:Suffix, ",
        [f"{module}:Suffix"],
        Suffix,
        (Suffix(),),
    ):
        assert interceptor_classes(given, PRODUCER_METHODS).on_send(RECORD).value == b"v!"
    both = interceptor_classes(f"{module}:Suffix,{module}:Suffix", PRODUCER_METHODS)
    assert both.on_send(RECORD).value == b"v!!"
    nothings: list[object] = ["", [], None]
    for nothing in nothings:
        assert not interceptor_classes(nothing, PRODUCER_METHODS)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("no.such.module:Name", "'no.such.module:Name' is not a class that can be imported"),
        ("nodots", "'nodots' is not a class that can be imported"),
        ("..Name", "'..Name' is not a class that can be imported"),
        ("..", "'..' is not a class that can be imported"),
        (f"{__name__}:Missing", "Missing"),
        ([Suffix()], "has none of the methods on_consume, on_commit"),
        (5, "5 has none of the methods"),
    ],
)
def test_pr_10_what_is_no_interceptor_is_refused(given: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"interceptor\.classes: ") as caught:
        interceptor_classes(given, CONSUMER_METHODS)
    assert problem in str(caught.value)
