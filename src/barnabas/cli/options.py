"""Defines and parses options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

import click

from barnabas.cli.completion import topic_names
from barnabas.cli.waiting import Waiting
from barnabas.errors import UnknownTopicOrPartition

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

INT32 = click.IntRange(0, 2**31 - 1)
INT64 = click.IntRange(0, 2**63 - 1)
"""The ranges of numbers in Kafka's protocol: partitions, brokers, epochs | offsets, ids, ms."""

storage = click.option(
    "--storage",
    "storage_pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the object store, such as AWS_REGION=eu-west-1; may be repeated.",
)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Duration(click.ParamType[float]):
    """Converts a duration such as `90s`, `15m`, `24h` or `7d` to seconds."""

    name = "time"
    _UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> float:
        found = re.fullmatch(r"(\d{1,9})([smhd])", str(value))
        if found is None:
            self.fail(
                f"{value!r} is not a number followed by s, m, h or d, such as 24h",
                parameter,
                context,
            )
        return int(found[1]) * self._UNITS[found[2]]


def topic_name(command: F) -> F:
    """Accept the topic as an argument or, like Kafka's tools, as `--topic`."""
    option = click.option(
        "--topic",
        "topic_option",
        metavar="NAME",
        shell_complete=topic_names,
        help="The same as NAME.",
    )
    argument = click.argument(
        "topic_argument", metavar="[NAME]", required=False, shell_complete=topic_names
    )
    return argument(option(command))


def one_topic(argument: str | None, option: str | None) -> str:
    """Return the topic from the argument or the option. Raises UsageError."""
    if argument is not None and option is not None and argument != option:
        raise click.UsageError(f"two topics are specified, {argument} and {option}")
    name = argument if argument is not None else option
    if not name:
        raise click.UsageError("name a topic")
    return name


def storage_options(pairs: Iterable[str]) -> dict[str, str]:
    """Return the options from `--storage`. Raises UsageError, which never shows the value because
    it may be a secret.
    """
    # The value may be a secret key, so do not show the pair.
    if any("=" not in pair for pair in pairs):
        raise click.UsageError("--storage: a value does not have the form NAME=VALUE")
    return key_values(pairs, "--storage")


def key_values(pairs: Iterable[str], option: str) -> dict[str, str]:
    """Parse `k=v` texts into a dictionary. If a name is repeated, its last value is used. Raises
    UsageError.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{option} {pair}: not KEY=VALUE")
        found[key.strip()] = value
    return found


def client_properties(pairs: Iterable[str], option: str) -> dict[str, str]:
    """Parse texts such as `linger.ms=5` into client options such as `linger_ms`. Raises
    UsageError."""
    given = key_values(pairs, option)
    return {name.replace(".", "_"): value for name, value in given.items()}


def unescape(text: str) -> bytes:
    r"""Return an argument as bytes, with `\t`, `\n`, `\r`, `\\`, `\0` and `\x1e` replaced."""
    replacements = {"t": b"\t", "n": b"\n", "r": b"\r", "0": b"\0", "\\": b"\\"}
    pieces: list[bytes] = []
    # Leave unknown escape sequences unchanged.
    for piece in re.split(r"(\\x[0-9a-fA-F]{2}|\\.)", text, flags=re.DOTALL):
        if piece.startswith("\\x") and len(piece) == 4:
            pieces.append(bytes([int(piece[2:], 16)]))
        elif len(piece) == 2 and piece[0] == "\\" and piece[1] in replacements:
            pieces.append(replacements[piece[1]])
        else:
            pieces.append(piece.encode("utf-8", "surrogateescape"))
    return b"".join(pieces)


def run_client(
    work: Coroutine[Any, Any, T], waits_for: str | None = "a response from the brokers"
) -> T:
    """Run a command's work on its own event loop. Ctrl-C cancels the work.

    If the work takes long, `waits_for` is shown on a terminal. Pass None if the command shows this
    itself.
    """
    # Import these only here, because commands that use no brokers do not need them.
    import asyncio

    from barnabas.net.loop import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            if waits_for is None:
                return runner.run(work)
            with Waiting(waits_for):
                return runner.run(work)
        except UnknownTopicOrPartition as error:
            context = click.get_current_context(silent=True)
            servers = None if context is None else context.params.get("servers")
            # The brokers may know topics with similar names.
            if servers:
                from barnabas.cli.connection import client_options
                from barnabas.cli.suggestion import topics_like

                suggestion = runner.run(topics_like(servers, str(error), client_options()))
                if suggestion:
                    error.add_note(suggestion)
            raise
