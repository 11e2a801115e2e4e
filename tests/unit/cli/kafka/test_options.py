"""UX-6: Kafka's command lines are read as its own option parser reads them."""

from __future__ import annotations

import pytest

from barnabas.cli.kafka.options import BadCommandLine, Given, Option, flags, parse, values

OPTIONS = (
    *flags("list describe"),
    *values("topic=TOPIC partitions=N config=NAME=VALUE"),
    Option("state", "STATE", is_value_optional=True),
    Option("props", "NAME=VALUE", takes_several=True),
)


def given(line: str, abbreviates: bool = False) -> Given:
    return parse(line.split(), OPTIONS, abbreviates)


def test_a_value_stands_behind_an_option_or_its_equals_sign() -> None:
    for line in ("--topic t", "--topic=t", "-topic t", "-topic=t"):
        assert given(line).text("topic") == "t"
    assert given("--config a=b=c").text("config") == "a=b=c"
    assert given("--config=a=b=c").text("config") == "a=b=c"
    assert given("--topic=").text("topic") == ""
    assert given("--topic --list").text("topic") == "--list", "as joptsimple takes it"


def test_flags_and_repeated_options() -> None:
    found = given("--list --config a=1 --config b=2 rest --describe")
    assert list(found) == ["list", "config", "describe"]
    assert found.texts("config") == ["a=1", "b=2"]
    assert found.others == ("rest",)
    assert "list" in found and "topic" not in found
    with pytest.raises(BadCommandLine, match="--config is given 2 times"):
        found.text("config")


def test_optional_values_and_lists() -> None:
    assert given("--state --list").texts("state") == []
    assert "state" in given("--state")
    assert given("--state Empty").text("state") == "Empty"
    assert given("--state=Empty").text("state") == "Empty"
    assert given("--props a=1 b=2 --list").texts("props") == ["a=1", "b=2"]
    assert given("--list -- --topic").others == ("--topic",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--tpoic t", "tpoic is not a recognized option; did you mean --topic?"),
        ("--topi t", "topi is not a recognized option; did you mean --topic?"),
        ("--xyzzy", "xyzzy is not a recognized option; --help lists the options"),
        ("--topic", "Option topic requires an argument: --topic VALUE"),
        ("--props --list", "Option props requires an argument: --props VALUE"),
        ("--list=yes", "--list=yes: --list takes no value"),
    ],
)
def test_what_is_wrong_is_said_with_the_nearest_name(line: str, said: str) -> None:
    with pytest.raises(BadCommandLine) as caught:
        given(line)
    assert str(caught.value) == said


def test_only_some_tools_take_shortened_names() -> None:
    assert given("--top t", abbreviates=True).text("topic") == "t"
    with pytest.raises(BadCommandLine, match="did you mean --topic"):
        given("--top t")
    with pytest.raises(BadCommandLine):  # the start of two names
        parse(["--to"], values("topic=T total=N"), True)


def test_a_deprecated_name_stands_for_the_new_one_and_is_ignored_beside_it() -> None:
    older = {"subject": "topic"}
    found = parse(["--subject=t", "--list"], OPTIONS, older=older)
    assert (list(found), found.text("topic")) == (["topic", "list"], "t")
    for line in ("--subject old --topic new", "--topic new --subject old"):
        assert parse(line.split(), OPTIONS, older=older).texts("topic") == ["new"]


def test_numbers_have_bounds() -> None:
    assert given("--partitions 3").number("partitions", 1) == 3
    assert given("--list").number("partitions") is None
    for text in ("x", "1.5", ""):
        with pytest.raises(BadCommandLine, match="not a whole number"):
            given(f"--partitions={text}").number("partitions")
    with pytest.raises(BadCommandLine, match="--partitions 0: not from 1 to 10"):
        given("--partitions 0").number("partitions", 1, 10)


def test_options_that_need_or_exclude_each_other() -> None:
    found = given("--list --topic t")
    with pytest.raises(BadCommandLine, match=r'Missing required argument "\[partitions\]"'):
        found.need("topic", "partitions")
    with pytest.raises(BadCommandLine, match="can't be used with option"):
        found.not_with("topic", "list")
    with pytest.raises(BadCommandLine, match="--topic can be used only with --describe"):
        found.only_with("topic", "describe")
    with pytest.raises(BadCommandLine, match="exactly one of --list or --topic"):
        found.one_of("list", "topic")
    assert found.one_of("list", "describe") == "list"
