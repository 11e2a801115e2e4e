"""The list of mutations fits the sources: each fragment is still there, and there once."""

from __future__ import annotations

from pathlib import Path

from tests.kit.foreign import CHECKOUT
from tests.mutants.every import MUTATIONS

_FEWEST = 60


def test_each_fragment_stands_once_in_its_file() -> None:
    sources = {
        each.file: (Path(CHECKOUT) / "src" / each.file).read_text(encoding="utf-8")
        for each in MUTATIONS
    }
    assert [
        (each.name, count)
        for each in MUTATIONS
        if (count := sources[each.file].count(each.fragment)) != 1
    ] == []


def test_each_mutation_is_one_and_has_tests() -> None:
    assert len({(each.file, each.fragment, each.replacement) for each in MUTATIONS}) >= _FEWEST
    for each in MUTATIONS:
        assert each.fragment != each.replacement, each.name
        assert each.tests, each.name
        for test in each.tests:
            assert (Path(CHECKOUT) / "tests" / test).is_file(), test
