"""Files, functions and signatures stay small enough to be read in one go.

`exemptions.txt` names what is larger, with its size: one line `<path>[::<function>] <measure>
<size>` each. It may only shrink: an entry that is larger than it need be fails, and so does one
that nothing needs any more.
"""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from typing import NamedTuple

from tests.kit.foreign import CHECKOUT
from tests.tidy.small_files import small_files
from tests.tidy.source import Function, everything, sources

FILE_LINES = 600
MEDIAN_FILE_LINES = 150
FUNCTION_LINES = 60
PARAMETERS = 5
CONSTRUCTOR_DEPENDENCIES = 8
# Files below 80 lines that one other file imports; may only go down.
SMALL_FILES = 34

EXEMPTIONS = CHECKOUT / "tests" / "tidy" / "exemptions.txt"


class Excess(NamedTuple):
    """Something over its cap; `str` gives its line in the exemptions."""

    where: str
    measure: str
    size: int

    def __str__(self) -> str:
        return f"{self.where} {self.measure} {self.size}"


def test_nothing_outgrows_its_cap_except_what_is_exempt() -> None:
    found = sorted(map(str, _excesses()))
    exempt = [
        line for line in EXEMPTIONS.read_text().splitlines() if line and not line.startswith("#")
    ]
    assert found == sorted(exempt), "over a cap (left) against tests/tidy/exemptions.txt (right)"


def test_the_median_file_is_short() -> None:
    """Packages' empty `__init__.py` do not count: they would flatter the median."""
    sizes = [file.line_count for file in sources("src") if file.line_count > 1]
    assert statistics.median(sizes) <= MEDIAN_FILE_LINES


def test_few_small_files_have_a_single_reader() -> None:
    """A file that only one other imports belongs there if it shares its noun."""
    found = [str(file) for file in small_files()]
    assert len(found) <= SMALL_FILES, "\n".join(found)


def _excesses() -> Iterator[Excess]:
    for file in everything():
        if file.line_count > FILE_LINES:
            yield Excess(file.path, "lines", file.line_count)
        for name, function in file.functions:
            where = f"{file.path}::{name}"
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_LINES:
                yield Excess(where, "lines", lines)
            # A test's parameters are fixtures and cases, a command's its options.
            if not file.path.startswith("tests/") and not _is_command(function):
                yield from _crowded_signature(where, function)


def _crowded_signature(where: str, function: Function) -> Iterator[Excess]:
    """A constructor's dependencies are what it cannot do without; its options are free."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    required += sum(default is None for default in arguments.kw_defaults)
    total = len(positional) + len(arguments.kwonlyargs)
    own = bool(positional) and positional[0].arg in ("self", "cls")
    if function.name == "__init__":
        if required - own > CONSTRUCTOR_DEPENDENCIES:
            yield Excess(where, "dependencies", required - own)
    elif total - own > PARAMETERS:
        yield Excess(where, "parameters", total - own)


def _is_command(function: Function) -> bool:
    """Whether a decorator makes it a command of the command line."""
    return any("command" in ast.unparse(decorator) for decorator in function.decorator_list)
