"""What all groups of commands share: whole helps, one hint for a mistyped word, one verb (UX-4)."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from barnabas.cli.app import app
from barnabas.cli.group import CommandGroup
from barnabas.cli.main import main

Capture = pytest.CaptureFixture[str]


def groups() -> Iterator[tuple[str, CommandGroup, click.Context]]:
    """Every group of ours, with the words that call it."""
    root = click.Context(app, info_name="barnabas")
    for name in app.list_commands(root):
        command = app.get_command(root, name)
        if isinstance(command, click.Group):
            assert isinstance(command, CommandGroup), f"{name}: made by @click.group"
            yield name, command, click.Context(command, root, name)


def test_ux_1_the_help_of_a_group_has_the_whole_first_sentence_of_each_command() -> None:
    seen = 0
    for name, group, context in groups():
        shown = " ".join(group.get_help(context).partition("Commands:\n")[2].split())
        for each in group.list_commands(context):
            command = group.get_command(context, each)
            assert command is not None and command.help is not None
            sentence = command.get_short_help_str(10_000)
            assert f"{each} {sentence}" in shown and not sentence.endswith("..."), (name, each)
            seen += 1
    assert seen > 50


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("topics creat", "topics: no such command: creat; did you mean create? See"),
        ("topcs list", ": no such command: topcs; did you mean topics? See"),
        (
            "start",
            "did you mean `barnabas server start`, or `barnabas cluster start`, or `barnabas "
            "zookeeper start`? See",
        ),
        ("stop", "did you mean `barnabas server stop`, or `barnabas cluster stop`? See"),
        ("create", "did you mean `barnabas topics create`? See"),
        ("topics consume", "did you mean `barnabas consume`, or `barnabas perf consume`? See"),
        ("conf", "did you mean configs? See"),
        ("frobnicate", "barnabas: no such command: frobnicate; see barnabas --help"),
        ("topics list --jsn", "no such option: --jsn; did you mean --json? See"),
        ("topics list --frobnicate", "no such option: --frobnicate; see"),
        ("server start --prot 1", "no such option: --prot; did you mean --port? See"),
        ("server start --frobnicate", "no such option: --frobnicate; see"),
    ],
)
def test_ux_4_one_hint_for_what_a_mistyped_word_may_have_meant(
    capsys: Capture, line: str, said: str
) -> None:
    assert main(line.split()) == 2
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1
    assert errors.lower().count("did you mean") == said.count("did you mean")


def test_delete_is_the_verb_of_all_groups_and_remove_means_the_same(capsys: Capture) -> None:
    deleting = [name for name, group, context in groups() if group.get_command(context, "delete")]
    assert {"topics", "groups", "records", "acls", "users", "profile"} <= set(deleting)
    for name in deleting:
        helps = []
        for verb in ("delete", "remove", "rm"):
            assert main([name, verb, "--help"]) == 0
            helps.append(capsys.readouterr().out.replace(f" {verb} ", " ... ", 1))
        assert len(set(helps)) == 1
    for _, group, context in groups():
        assert not {"remove", "rm"} & set(group.list_commands(context))
