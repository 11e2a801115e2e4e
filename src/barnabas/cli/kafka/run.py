"""Runs one of Kafka's command lines, or explains it by printing our own command (UX-6).

barnabas kafka-topics.sh --create --bootstrap-server localhost:9092 --topic test
barnabas kafka-topics.sh --create --bootstrap-server localhost:9092 --topic test --explain
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import click

from barnabas._version import __version__
from barnabas.cli.complaint import complain, explain
from barnabas.cli.kafka.names import (
    CLASSES,
    MODULES,
    NOT_COVERED,
    REPLACED,
    RUN_CLASS,
    every_script,
    script_of,
)
from barnabas.cli.kafka.options import BadCommandLine, Option, parse
from barnabas.cli.kafka.retired import check_options, replaced_line
from barnabas.cli.kafka.tool import NotCovered, Tool
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.errors import BarnabasError

_EXIT_INTERRUPTED = 130  # a shell's exit code for an interrupted process
_EXPLAIN = "--explain"
_HELP = ("--help", "-h", "-help")


def run(words: Sequence[str]) -> int:
    """Run or explain one of Kafka's command lines, starting with the script, and return the exit
    code. Like Kafka's tools, this exits with 1 for any error.
    """
    typed, *rest = words
    try:
        code = _run(typed, rest)
        sys.stdout.flush()
    except BrokenPipeError:
        # It is not an error if the reader, such as `head`, closes the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except click.UsageError as error:
        complain(typed, error.format_message())
        return EXIT_FAILURE
    except (BarnabasError, OSError) as error:
        complain(typed, explain(error))
        return EXIT_FAILURE
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    return code


def load(script: str) -> Tool:
    """Return the tool for a script. Raises NotCovered, which says what to do instead."""
    if script in MODULES:
        module = import_module(f"barnabas.cli.kafka.{MODULES[script]}")
        tool: Tool = module.TOOLS[script] if hasattr(module, "TOOLS") else module.TOOL
        return tool
    if script in NOT_COVERED:
        raise NotCovered(NOT_COVERED[script])
    near = get_close_matches(script, [*every_script(), *NOT_COVERED], 1)
    raise NotCovered(
        f"Kafka has no such script; did you mean {near[0]}.sh?"
        if near
        else "Kafka has no such script; `barnabas --help` lists our own commands"
    )


def _run(typed: str, words: list[str]) -> int:
    script = script_of(typed) or typed
    if script == RUN_CLASS:
        script, words = _of_class(words)
    if script in REPLACED:
        raise NotCovered(replaced_line(REPLACED[script], words))
    tool = load(script)
    # Accept --explain anywhere, because users add it to an existing command line.
    asked = [word for word in words if word != _EXPLAIN]
    # Without arguments, Kafka's tools print help and exit with 1.
    if (not words and not tool.runs_alone) or set(asked) & set(_HELP):
        return _help(script, tool, is_asked=bool(asked))
    # ZooKeeper's scripts have no --version.
    if "--version" in asked and script.startswith("kafka-"):
        click.echo(f"{__version__} (Barnabas, with the tools of Kafka 3.9)")
        return EXIT_OK
    # Check this first, because parsing would only report that a retired option is "not a recognized
    # option".
    check_options(script, tool, asked)
    given = parse(asked, tool.options, tool.abbreviates, tool.older)
    if given.others and not tool.operands:
        raise BadCommandLine(f"{' '.join(given.others)}: not the value of an option; leave it out")
    # The command line contained --explain, which has been removed from `asked`.
    if len(asked) < len(words):
        for line in tool.explain(given):
            click.echo(shlex.join(["barnabas", *line]))
        return EXIT_OK
    return tool.run(given)


def _of_class(words: list[str]) -> tuple[str, list[str]]:
    """Return the script for the class that the first operand names, and the words after this
    operand. Raises BadCommandLine.
    """
    left = list(words)
    # JVM options of kafka-run-class.sh itself precede the class.
    while left and left[0] in ("-daemon", "-loggc", "-name"):
        del left[: 2 if left[0] == "-name" else 1]
    if not left or left == [_EXPLAIN]:
        raise BadCommandLine(
            "name a class: barnabas kafka-run-class.sh kafka.tools.DumpLogSegments --files FILE"
        )
    name = left.pop(0)
    if name not in CLASSES:
        near = get_close_matches(name, CLASSES, 1, 0.7)
        advice = f"did you mean {near[0]}?" if near else "only Kafka's tools can be run"
        raise NotCovered(f"no class {name}: {advice}")
    return CLASSES[name], left


def _help(script: str, tool: Tool, *, is_asked: bool) -> int:
    """Print the tool's purpose and options. Unless help was requested, print them to standard
    error.
    """
    lines = [
        tool.about,
        "",
        f"Usage: barnabas {script}.sh [options]{f' {tool.operands}' * bool(tool.operands)}",
        "",
        *(f"  {_shown(option)}" for option in tool.options),
        *(f"  {f'--{old}':<40} Deprecated: --{new}." for old, new in tool.older.items()),
        f"  {_EXPLAIN:<40} Print our own command for this line instead of running it.",
    ]
    click.echo("\n".join(lines), err=not is_asked)
    return EXIT_OK if is_asked else EXIT_FAILURE


def _shown(option: Option) -> str:
    value = f"<{option.value}>" if option.value else ""
    return f"--{option.name} {f'[{value}]' if option.is_value_optional else value}".rstrip()
