"""What the secured suites leave out is named as it is called."""

from __future__ import annotations

from tests.kit.foreign import CHECKOUT
from tests.kit.secured.skips import REASONS, reason_of


def test_each_skip_is_of_a_file_that_there_is() -> None:
    names = [start.partition("::")[0] for start in REASONS]
    assert [name for name in names if not (CHECKOUT / name).is_file()] == []


def test_a_skip_has_the_reason_of_its_file() -> None:
    start, why = next(iter(REASONS.items()))
    assert reason_of(f"{start}::test_something") == why
    assert reason_of("tests/conformance/test_topics.py::test_something") is None
    assert reason_of("tests/integration/test_client_groups.py::test_it[kafka]") is not None
