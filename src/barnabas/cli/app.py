"""Defines the command group `barnabas`, which loads each command only when it is called.

An error that is not a bug is reported on standard error, in one line that says what to do. The exit
code is 1 for a failure and 2 for an invalid command line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import click

from barnabas._version import __version__
from barnabas.cli.complaint import complain
from barnabas.cli.group import CommandGroup, UnknownCommand
from barnabas.cli.main import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    drop_output,
)
from barnabas.errors import BarnabasError, ConfigError
from barnabas.extras import install_line

_COMMANDS = {
    "server": "Run or stop a broker.",
    "cluster": "Run a cluster on this machine; describe any cluster, and check its health.",
    "zookeeper": "Run a ZooKeeper server on this machine.",
    "topics": "Create, list, describe, alter and delete topics.",
    "offsets": "Show where partitions begin and end, and their offsets at a given time.",
    "log-dirs": "Show the log directories of brokers, and the replicas in them.",
    "partitions": "Watch the replicas of partitions: leader, ISR and lag.",
    "events": "Show what the brokers decided, and why.",
    "elect-leaders": "Elect the preferred replicas of partitions, or any live ones.",
    "reassign": "Move partitions to other brokers.",
    "migrate": "Replace Kafka's brokers by ours one at a time, or the reverse.",
    "copy": "Copy topics, group offsets and access rules from another cluster.",
    "produce": "Send lines to a topic.",
    "consume": "Print the records of a topic.",
    "collect": "Send the lines of log files to a topic, each line once.",
    "track": "Receive events from pages and apps over HTTP, and send them to a topic.",
    "dead-letters": "List the records that a pipeline rejected, and send them again.",
    "groups": "List, describe, watch, reset and delete consumer groups.",
    "transactions": "List and describe transactions, and abort hanging ones.",
    "records": "Delete the oldest records of partitions.",
    "configs": "Show and change the configs of topics and brokers.",
    "acls": "Add, list, delete and explain access rules.",
    "users": "Add, list and delete the users who log in, and change their passwords.",
    "certificates": "Show, renew and issue the certificates of brokers and clients.",
    "metadata": "Read, protect or import the metadata tree.",
    "dump": "Print or check the files of a log directory.",
    "table": "Merge and remove files of Delta tables.",
    "report": "Write a report on log files, without a broker or Spark.",
    "formats": "List the known log formats, and try them on a file.",
    "pages": "Serve a pipeline's tables as pages that clicks filter.",
    "alerts": "Find incidents in logs with rules, and report them.",
    "console": "Serve a web page that shows a cluster and what needs attention.",
    "demo": "Run a cluster in which something happens, and its console.",
    "verify": "Check that outputs contain every record of a topic exactly once.",
    "perf": "Measure how fast a cluster accepts and serves records.",
    "install-scripts": "Write Kafka's scripts, such as kafka-topics.sh.",
    "profile": "Save clusters' addresses under names, for --profile.",
    "verifiable-producer": "Send numbers, and print each outcome as JSON.",
    "verifiable-consumer": "Consume in a group, and print each event as JSON.",
}

_KAFKA_TOOLS = ("kafka-*.sh", "Kafka's own command lines; --explain prints our equivalents.")


_MOST_SUGGESTED = 3
_MEANT = {
    "barnabas status": "cluster health",
    "barnabas zkCli.sh": "zookeeper-shell.sh",
    "server status": "cluster health",
    "cluster status": "cluster health",
    "zookeeper status": "zkServer.sh status",
    "zookeeper stop": "zookeeper-server-stop.sh",
}
"""Maps commands that users of other servers try to ours, where the name does not suggest them."""
_CLI = "barnabas.cli."
_EXTRAS = {
    "barnabas_pipeline.pages.": "pages",
    "barnabas_pipeline.": "pipeline",
    "barnabas.console.": "console",
}
"""Maps packages whose commands need an extra to the name of the extra."""

_MODULES = {
    "elect-leaders": "partitions.elect_command",
    "reassign": "partitions.reassign_command",
    "produce": "records.produce_command",
    "consume": "records.consume_command",
    "collect": "records.collect_command",
    "dead-letters": "records.dead_letters_command",
    "records": "records.delete_command",
    "table": "table_command",
    "install-scripts": "kafka.install_command",
    "report": "barnabas_pipeline.report_command",
    "formats": "barnabas_pipeline.formats_command",
    "alerts": "barnabas_pipeline.alerts.command",
    "pages": "barnabas_pipeline.pages.command",
    "console": "barnabas.console.command",
    "demo": "barnabas.console.demo.command",
    "log-dirs": "log_dirs.command",
    "verifiable-producer": "verifiable.producer_command",
    "verifiable-consumer": "verifiable.consumer_command",
}
"""The modules of commands that are in another package or not in `<name>/command.py`."""


class _Commands(CommandGroup):
    """Loads a command's module only when the command is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)  # to print --help and --version
        except BrokenPipeError:
            drop_output()
            ctx.exit(EXIT_OK)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # `barnabas topics list | head -1` must succeed, like `ls | head -1`.
            drop_output()  # do this before click exits with 1
            return EXIT_OK
        return outcome

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        # Import the module only now, so that no command loads the libraries of other commands.
        name = _MODULES.get(cmd_name, f"{cmd_name}.command")
        extra = next((each for own, each in _EXTRAS.items() if name.startswith(own)), None)
        module = import_module(_CLI + name) if extra is None else _of_extra(name, extra)
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items(), _KAFKA_TOOLS])


def _of_extra(name: str, extra: str) -> ModuleType:
    """Import a command that needs the libraries of an extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"{error}: {install_line(extra)}") from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="barnabas", message="%(prog)s %(version)s")
def app() -> None:
    """A commit log that speaks Kafka's protocol: the broker and its tools.

    \b
    Examples:
      barnabas server start --data-dir ~/barnabas
      barnabas topics create test --partitions 3
      echo "hello" | barnabas produce test
      barnabas consume test --from-beginning

    Each command has its own --help, with examples.
    """


def run(words: Sequence[str]) -> int:
    """Run the command line in `words`, and return the exit code."""
    try:
        # With standalone_mode=False, click raises errors instead of exiting the interpreter.
        outcome = app.main(list(words), prog_name="barnabas", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return EXIT_USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "barnabas"
        advice = f"{suggestion} See" if (suggestion := _suggestion(error)) else "see"
        complain(path, f"{_problem(error)}; {advice} {path} --help")
        return EXIT_USAGE
    except click.ClickException as error:
        complain("barnabas", error.format_message())
        return error.exit_code
    except (BarnabasError, OSError) as error:
        complain("barnabas", error)
        return EXIT_FAILURE
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    return outcome if isinstance(outcome, int) else EXIT_OK


def _problem(error: click.UsageError) -> str:
    """Describe what is wrong with the command line, without click's hint."""
    if isinstance(error, click.NoSuchOption):
        return f"no such option: {error.option_name}"
    problem = error.format_message().rstrip(".")
    # click's "'x' is not a valid integer range" describes its types, not what is wrong with 'x'.
    for kind, noun in (("integer", "a whole number"), ("float", "a number")):
        problem = problem.removesuffix(" range").replace(f"is not a valid {kind}", f"is not {noun}")
    return problem


def _suggestion(error: click.UsageError) -> str:
    """Return the options or commands that resemble a mistyped one."""
    from barnabas.similar_names import did_you_mean

    if isinstance(error, click.NoSuchOption):
        return did_you_mean(error.option_name, error.possibilities or ())
    if not isinstance(error, UnknownCommand) or error.ctx is None:
        return ""
    group = error.ctx.command
    assert isinstance(group, CommandGroup)
    if meant := _MEANT.get(f"{error.ctx.info_name} {error.name}"):
        return f"did you mean `barnabas {meant}`?"
    own = group.list_commands(error.ctx)
    near = did_you_mean(error.name, own)
    # `barnabas top` starts like `topics`, but is too short to count as similar.
    longer = [name for name in own if len(error.name) > 1 and name.startswith(error.name)]
    return near or f"did you mean {', or '.join(longer)}?" * bool(longer) or _elsewhere(error.name)


def _elsewhere(name: str) -> str:
    """Return the commands of this name in other groups. For example, `start` may refer to a server
    or to a cluster.
    """
    context = click.Context(app, info_name="barnabas")
    found = [f"barnabas {name}"] if app.get_command(context, name) is not None else []
    for group_name in app.list_commands(context):
        try:
            group = app.get_command(context, group_name)
        except ConfigError:  # the extra of this group is not installed
            continue
        if isinstance(group, CommandGroup) and group.get_command(context, name) is not None:
            found.append(f"barnabas {group_name} {name}")
    shown = [f"`{each}`" for each in found[:_MOST_SUGGESTED]]
    return f"did you mean {', or '.join(shown)}?" if shown else ""
