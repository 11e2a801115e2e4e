"""Lines that container runtimes have wrapped: contents, partial lines, stack traces."""

from __future__ import annotations

import pytest

from barnabas_formats.containers import Wrapped, join, unwrap
from tests.kit.pipeline.log_records import parsed

AT = "2026-03-10T10:00:00.5Z"


def docker(text: str) -> str:
    return f'{{"log":"{text}","stream":"stdout","time":"{AT}"}}'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (docker(r"\tat a\n"), Wrapped("\tat a", True)),
        (docker("half"), Wrapped("half", False)),
        (f"{AT} stdout F  a", Wrapped(" a", True, f"{AT} stdout ")),
        (f"{AT} stderr P:x a", Wrapped("a", False, f"{AT} stderr ")),
        (f"{AT} stderr F", Wrapped("", True, f"{AT} stderr ")),
        (f"{AT} stdin F a", None),
        ('{"log":1}', None),
        ('{"log":"a', None),
        ("a", None),
    ],
)
def test_what_a_line_contains(line: str, expected: Wrapped | None) -> None:
    assert unwrap(line) == expected


def test_partial_lines_are_one_line() -> None:
    more = f"{AT} stdout P b \n{AT} stdout F c\n{AT} stdout F  at x"
    assert join(f"{AT} stdout P a ", more) == (f"{AT} stdout F a b c", " at x")
    assert join("a", "b") == ("a", "b")


def test_lg_3_a_record_of_a_container_is_that_of_its_program() -> None:
    error = "2026-03-10 10:00:00,123 ERROR [main] shop.Checkout: failed"
    expected = {
        "time": "2026-03-10T10:00:00.5Z",
        "component": "shop.Checkout",
        "level": "ERROR",
        "thread": "main",
        "message": "failed",
        "more": "\tat shop.Run",
    }
    assert parsed(
        "\n".join(map(docker, (error[:20], rf"{error[20:]}\n", r"\tat shop.Run\n"))),
        f"{AT} stdout P {error[:20]}\n{AT} stdout F {error[20:]}\n{AT} stdout F \tat shop.Run",
    ) == [{"format": "docker", **expected}, {"format": "cri", **expected}]
