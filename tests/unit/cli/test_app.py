"""What all groups of commands share: whole helps, one hint for a mistyped word, one verb (UX-4)."""

from __future__ import annotations

import subprocess
import sys
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
        ("cluster status", "did you mean `barnabas cluster health`? See"),
        ("zkCli.sh ls /", "did you mean `barnabas zookeeper-shell.sh`? See"),
        ("server status", "did you mean `barnabas cluster health`? See"),
        ("zookeeper status", "did you mean `barnabas zkServer.sh status`? See"),
        ("zookeeper stop", "did you mean `barnabas zookeeper-server-stop.sh`? See"),
        ("cluster start --brokers abc", "'--brokers': 'abc' is not a whole number; see"),
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


def run_after(preparation: str, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in an interpreter that has run `preparation` first."""
    program = f"{preparation}\nfrom barnabas.cli.main import main\nsys.exit(main({line.split()!r}))"
    command = [sys.executable, "-c", f"import os, signal, sys\n{program}"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_ux_4_an_unknown_command_needs_no_extra_to_be_reported() -> None:
    ended = run_after("sys.modules['polars'] = None", "zookeeper frobnicate")
    assert ended.returncode == 2
    assert ended.stderr == (
        "barnabas zookeeper: no such command: frobnicate; see barnabas zookeeper --help\n"
    )


_INTERRUPT_IMPORT = """
class Interrupting:
    def find_spec(self, name, *_):
        if name == "barnabas.cli.app":
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
"""


def test_ctrl_c_while_a_command_is_loaded_prints_no_traceback() -> None:
    ended = run_after(_INTERRUPT_IMPORT, "topics list")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("server start --data", ["plain,--data-dir"]),
        ("server start -d", ["plain,-daemon"]),
        ("zookeeper start --data", ["plain,--data-dir"]),
        ("zookeeper start zoo", ["file,zoo"]),
    ],
)
def test_the_shell_completes_commands_that_parse_their_own_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, line: str, offered: list[str]
) -> None:
    monkeypatch.setenv("_BARNABAS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"barnabas {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == offered
