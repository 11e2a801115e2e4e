"""Defines how a Kafka tool is described: by its options, our equivalent, and a function that runs
it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.cli.complaint import warn
from barnabas.cli.kafka.options import BadCommandLine, Given, Option
from barnabas.client.unused_options import SECURITY_PREFIXES
from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

Line = list[str]
"""The words of a `barnabas` command line, after `barnabas`."""


class NotCovered(BarnabasError):
    """Raised if Barnabas lacks a function of Kafka's tool; the message suggests an alternative."""


class Tool(NamedTuple):
    """Describes one of Kafka's tools."""

    about: str
    options: tuple[Option, ...]
    explain: Callable[[Given], list[Line]]
    """Returns our equivalent commands. Raises BadCommandLine or NotCovered."""
    run: Callable[[Given], int]
    """Does the work, prints what Kafka prints, and returns the exit code."""
    retired: Mapping[str, Retired] = {}
    older: Mapping[str, str] = {}  # maps deprecated names to options
    abbreviates: bool = False  # whether option names may be abbreviated
    operands: str = ""  # the meaning of operands; if empty, they are ignored
    runs_alone: bool = False  # runs without arguments; other tools then print their help


class Retired(NamedTuple):
    """Describes an option that Kafka has removed or deprecated."""

    why: str
    replacement: str  # the option to use instead, or empty if there is none
    takes_value: bool = True
    is_address: bool = False  # its value was ZooKeeper's address; a broker's is required


ZOOKEEPER = Retired(
    "this tool connects to brokers, not to ZooKeeper: give the address of a broker",
    "bootstrap-server",
    is_address=True,
)
BROKER_LIST = Retired("Kafka's tool calls it --bootstrap-server", "bootstrap-server")
OLD_SERVERS = {"broker-list": "bootstrap-server"}
"""Maps the deprecated name to --bootstrap-server, for the tools in Kafka 3.9 that accept it."""
NEW_CONSUMER = Retired("there is only the new consumer: leave the option out", "", False)


def servers(given: Given) -> str:
    """Return the bootstrap servers' addresses. Raises BadCommandLine."""
    if "bootstrap-server" not in given:
        raise BadCommandLine(
            "--bootstrap-server must be specified: add --bootstrap-server localhost:9092"
        )
    return given.text("bootstrap-server") or ""


def at_servers(given: Given, config_option: str = "command-config") -> Line:
    """Return the brokers and the client config file as options of our commands."""
    # Some of Kafka's tools name the file with --admin.config or --config. Ours all use
    # --command-config.
    file = option_words(given, config_option, "command-config")
    return [*file, "--bootstrap-server", servers(given)]


"""Security options are never left out, because our client either supports them or rejects them."""


def file_configs(given: Given, option: str) -> dict[str, str]:
    """Return the properties in the client config file, or none if the option is not given. Raises
    ConfigError if the file cannot be read.
    """
    path = given.text(option)
    if path is None:
        return {}
    from barnabas.config import load_properties

    return load_properties(path)


def client_configs(given: Given, option: str = "command-config") -> dict[str, Any]:
    """Return the `file_configs` that all our clients support, as client options. Warns about names
    that no client supports.
    """
    from barnabas.client.config import of_every_client
    from barnabas.client.known_options import unknown_options

    configs = file_configs(given, option)
    for line in unknown_options(configs):
        warn(f"--{option}", f"{given.text(option)}: {line}")
    return of_every_client(configs)


def admin_of(given: Given, option: str = "command-config") -> Admin:
    """Create a client from the brokers and the client config file on the command line."""
    from barnabas.client.admin.admin import Admin

    return Admin(servers(given), **client_configs(given, option))


def own_options(
    configs: Mapping[str, str], fields: Collection[str], unused: Collection[str], client: str
) -> dict[str, str]:
    """Return the configs that our client supports (`fields`), as options. Warn about all others
    except those in `unused`.

    `client` is "producer" or "consumer".
    """
    options: dict[str, str] = {}
    for name, value in configs.items():
        # A file for Kafka's clients may contain Java settings (serializers, SSL providers). Warn
        # about settings that have no effect, and continue.
        option = name.replace(".", "_")
        if option in fields or option.startswith(SECURITY_PREFIXES):
            options[option] = value
        elif name not in unused:
            warn(
                f"kafka-console-{client}.sh",
                f"{name}={shlex.quote(value)} has no effect on our {client}",
            )
    return options


def no_client_configs(given: Given, option: str = "command-config") -> None:
    """Raise NotCovered if a client config file is given, which our command cannot use."""
    path = given.text(option)
    if path is not None:
        raise NotCovered(
            f"--{option} {path}: our command accepts no file of client configs; without "
            "--explain, this line runs unchanged"
        )


def option_words(given: Given, option: str, to: str | None = None) -> Line:
    """Return `--to VALUE` for each value of an option."""
    return [word for text in given.texts(option) for word in (f"--{to or option}", text)]


def flag_words(given: Given, *names: str) -> Line:
    """Return the flags in `names` that are given. Our commands use the same names."""
    return [f"--{name}" for name in names if name in given]


_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")


def plain_names(text: str, option: str) -> list[str]:
    """Return the names in a list such as `a,b`. Raises NotCovered for patterns, which our command
    does not accept.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not all(_PLAIN_NAME.fullmatch(name) for name in names):
        raise NotCovered(
            f"--{option} {text}: our command accepts names, not patterns; without --explain, this "
            "line runs unchanged"
        )
    return names


def patterns(text: str, option: str) -> re.Pattern[str]:
    """Compile a pattern such as `a|b` or `a,b`, which Kafka's tools accept for topics. Raises
    BadCommandLine."""
    # As in Kafka's IncludeList, a comma means "or", blanks are ignored, and surrounding quotes are
    # dropped.
    source = re.sub(r"\s", "", text.strip().replace(",", "|")).strip("\"'")
    try:
        return re.compile(source)
    except re.error as error:
        raise BadCommandLine(f"--{option} {text}: not a regular expression: {error}") from error


def run_ours(lines: Sequence[Line]) -> int:
    """Run `barnabas` commands that print what Kafka prints. Returns the first nonzero exit code."""
    from barnabas.cli.app import run

    return next((code for line in lines if (code := run(line))), 0)
