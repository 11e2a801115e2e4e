"""LG-2: secrets are replaced before a line is sent, in a time that its length alone decides."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_collector.bundle import Bundle, Origin
from barnabas_collector.inbox import Inbox
from barnabas_collector.line_cutter import MAX_LINE_BYTES, Line
from barnabas_collector.redaction import MOST_MATCHES, TOO_MANY, Redaction, Rule, read_rules

pytest.importorskip("re2")


def redaction(*texts: str) -> Redaction:
    return Redaction(map(Rule.parse, texts))


def test_rules_apply_in_their_order() -> None:
    redact = redaction(r"password\=(\w)\S+=password=\1***", r"\b\d{16}\b=[card]", "card=CARD")
    assert redact(b"password=hunter2 1234567890123456") == b"password=h*** [CARD]"
    assert redact(b"\xff nothing \0 here") == b"\xff nothing \0 here"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a=b", Rule("a", "b")),
        ("a=b=c", Rule("a", "b=c")),
        (r"a\=b=c", Rule(r"a\=b", "c")),
        (r"a\\=c", Rule(r"a\\", "c")),
        ("a=", Rule("a", "")),
    ],
)
def test_the_first_equals_sign_without_a_backslash_separates(text: str, rule: Rule) -> None:
    assert Rule.parse(text) == rule


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("secret", "'secret' is not REGEX=REPLACEMENT"),
        (r"secret\=x", "is not REGEX=REPLACEMENT"),
        ("=x", "'=x' is not REGEX=REPLACEMENT"),
        ("(=x", "cannot redact by '(': missing ): ("),
        (r"(a)\1=x", r"cannot redact by '(a)\\1': invalid escape sequence"),
        (r"a=\2", "cannot redact by 'a': "),
        ("a*=x", "cannot redact by 'a*': it matches the empty string"),
        ("a=" + "x" * 1_025, "the replacement has more than 1,024 bytes"),
    ],
)
def test_ux_4_a_wrong_rule_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        redaction(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a.*)+(.*a.*)+x", "a{1,500}.{0,500}x"])
def test_a_pattern_that_stops_other_engines_is_done_with_the_longest_line(pattern: str) -> None:
    """With Python's `re` each of these does not end, or not in minutes."""
    text = b"a" * (MAX_LINE_BYTES - 1) + b"c"
    assert redaction(f"{pattern}y=x")(text) == text


def test_matches_are_limited_and_nothing_slips_through() -> None:
    redact = redaction("a=x")
    assert redact(b"a" * MOST_MATCHES) == b"x" * MOST_MATCHES
    assert redact(b"a" * (MOST_MATCHES + 1)) == TOO_MANY


def test_rules_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("[[redact]]\npattern = 'a=\\d'\nreplacement = 'x'\n" * 2)
    assert read_rules(path) == [Rule(r"a=\d", "x")] * 2
    assert Redaction(read_rules(path))(b"a=1") == b"x"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot read {path}: No such file or directory"),
        (b"redact = ", "{path} is not a TOML file: "),
        (b"\xff", "{path} is not a TOML file: "),
        (b"", "{path} is not a file of redaction rules: "),
        (b"[redact]\npattern='a'\nreplacement='b'", "{path} is not a file of redaction rules: "),
        (b"[[redact]]\npattern='a'", "{path} is not a file of redaction rules: "),
        (b"[[redact]]\npattern='a'\nreplacement=1", "{path} is not a file of redaction rules: "),
        (
            b"[[redact]]\npattern='a'\nreplacement='b'\nand='c'",
            "{path} is not a file of redaction rules: ",
        ),
        (
            b"[[redact]]\npattern='a'\nreplacement='b'\n[[other]]",
            "{path} is not a file of redaction rules: ",
        ),
    ],
)
def test_ux_4_a_file_that_is_none_of_rules(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "rules.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_rules(path)
    assert str(caught.value).startswith(problem.format(path=path))


def test_ux_4_without_the_library_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ConfigError, match="which is not installed: pip install"):
        redaction("a=b")


def test_lines_and_messages_that_were_cut_stay_cut() -> None:
    line = Line(7, 1, b"abc", 9)
    assert line.with_text(b"x") == Line(7, 1, b"x", 7)
    assert line.with_text(b"y" * (MAX_LINE_BYTES + 1)).is_cut
    inbox = Inbox(redact=redaction("b=xyz"))
    inbox.add([Bundle(Origin(b"", ()), [b"ab", b"cb"]), Bundle(Origin(b"", ()), [b"ab"], 100)])
    inbox.end()
    whole, cut = asyncio.run(inbox.take())
    assert whole.texts == [b"axyz", b"cxyz"] and not whole.is_cut
    assert (cut.texts, cut.came_bytes, cut.is_cut) == ([b"axyz"], 102, True)
