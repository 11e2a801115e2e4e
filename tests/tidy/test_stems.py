"""The test of a broker module is found by the name of the module."""

from __future__ import annotations

from pathlib import PurePosixPath

from tests.kit.foreign import CHECKOUT
from tests.tidy.source import sources

BROKER = "src/barnabas/broker"
TESTS = CHECKOUT / "tests"
UNTESTED = TESTS / "tidy" / "untested_stems.txt"


def test_every_module_of_the_broker_has_a_test_of_its_stem_or_a_line() -> None:
    """A line that is no longer needed fails as well."""
    modules = [
        path.relative_to(BROKER)
        for file in sources(BROKER)
        if (path := PurePosixPath(file.path)).stem != "__init__"
    ]
    wanted = {
        str(path)
        for path in modules
        if not (TESTS / "unit/broker" / path.with_name(f"test_{path.name}")).is_file()
    }
    assert wanted == set(_covered()), "without a test (left) against untested_stems.txt (right)"


def test_whatever_covers_a_module_is_there() -> None:
    covering = {test for test in _covered().values() if not (TESTS / test).is_file()}
    assert covering == set()


def _covered() -> dict[str, str]:
    """The test of each listed module."""
    lines = UNTESTED.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {module: test for module, _, test in pairs}
