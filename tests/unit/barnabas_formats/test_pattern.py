"""The notation of formats (SP-2), and what is said of one that is wrong (UX-4)."""

from __future__ import annotations

import re

import pytest

from barnabas.errors import ConfigError
from barnabas_formats.pattern import compile_pattern


def fields(pattern: str, line: str) -> dict[str, str] | None:
    match = re.match(compile_pattern(pattern).regex, line)
    return None if match is None else match.groupdict()


def test_fields_literals_and_blanks() -> None:
    pattern = "{time:%Y-%m-%d %H:%M:%S,%f} - {level} [{thread}:{component}@{line}] - {message}"
    line = (
        "2015-07-29 17:41:44,747 - INFO  [QuorumPeer[myid=1]/0:0:2181:FastLeaderElection@774] -"
        " Notification: a [b] - c"
    )
    assert fields(pattern, line) == {
        "time": "2015-07-29 17:41:44,747",
        "level": "INFO",
        "thread": "QuorumPeer[myid=1]/0:0:2181",
        "component": "FastLeaderElection",
        "message": "Notification: a [b] - c",
    }
    assert fields(pattern, line.replace("INFO", "HALLO")) is None, "no level"
    assert fields(pattern, line.replace(",747", "")) is None


@pytest.mark.parametrize(
    ("host", "is_host"),
    [
        *(
            (each, True)
            for each in ("gate", "INFO1", "inf", "i", "errors", "er", "e.b", "::1", "-")
        ),
        *((each, False) for each in ("INFO", "info", "Warn", "WARNING", "err", "gate:", ":")),
        *((each, False) for each in ("[INFO]", "<0.1.0>", "a=b", '"a"', "{a}", "f(x)")),
    ],
)
def test_sp_2_a_level_is_no_host(host: str, is_host: bool) -> None:
    assert (fields("{host} {message}", f"{host} x") is not None) == is_host


def test_a_fraction_that_may_be_left_out() -> None:
    pattern = "{time:%H:%M:%S%f %d %b} {message}"
    assert fields(pattern, "10:00:00.123 4 Mar x") is not None
    assert fields(pattern, "10:00:00 4 Mar x") is not None
    colon = "{time:%Y%m%d-%H:%M:%S:%f}|{component}|{message}"
    assert fields(colon, "20171224-0:7:20:444|Step_LSC|on") is not None


def test_other_fields_and_a_message_that_may_be_missing() -> None:
    found = compile_pattern("{component}: {message}", {"component": "a+"}, start=r"(?: +|$)").regex
    assert [re.match(found, each) is not None for each in ("aa:", "a: x", "a:x", "b: x")] == [
        *(True, True, False, False)
    ]


def test_what_stands_for_itself() -> None:
    assert fields("(a+b)* {message}", "(a+b)*   c") == {"message": "c"}
    assert fields("(a+b)* {message}", "aab c") is None


def test_braces_that_stand_for_themselves() -> None:
    assert fields("{{{component}}} {message}", "{a} b") == {"component": "a", "message": "b"}


def test_a_time_has_a_date_or_none() -> None:
    assert fields("{time:%H:%M:%S%f} {message}", "10:00:00.5 x") is not None
    assert fields("{time:%H:%M:%S %Z} {message}", "10:00:00 CET x") is not None


def test_the_head_ends_with_the_seconds() -> None:
    head = compile_pattern("<{priority}> {time:%d %b %H:%M:%S.%f} {message}").head
    assert re.match(head, "<7>  1 Mar 10:00:00") is not None
    assert re.match(head, "<7>  1 Mar 10:00") is None
    assert compile_pattern("{level}: {message}").head == ""


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("{time:%d %b %H:%M:%S}", "{message} is missing"),
        ("{message} {message}", "{message} occurs twice"),
        ("{time} {message}", "{time} has no format"),
        ("{time:%Q} {message}", "%Q is unknown; use %Y"),
        ("{time:%H:%M} {message}", "a time needs %H, %M and %S"),
        ("{time:%I:%M:%S} {message}", "or %I with %p in place of %H"),
        ("{time:%I:%H:%M:%S %p} {message}", "or %I with %p in place of %H"),
        ("{time:%H:%M:%S %p} {message}", "or %I with %p in place of %H"),
        ("{level:x} {message}", "only {time:...} may have a format"),
        ("{Message} {message}", "{Message} is not a field: a name consists of lower-case letters"),
        ("{ {message}", "belongs to no field"),
    ],
)
def test_ux_4_what_is_wrong_with_a_pattern(pattern: str, what: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(what)):
        compile_pattern(pattern)
