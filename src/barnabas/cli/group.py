"""Defines command groups with better help and errors than click's.

    def topics() -> None: ...    decorated by @command_group()

- A group's help shows the whole first sentence of each command; click shortens it to `...`.
- An unknown command or option produces only one hint, which replaces click's.
- All groups use the verb `delete`; `remove` and `rm` are aliases for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

_UNCUT: Final = 10_000
_ALIASES: Final = MappingProxyType({"remove": "delete", "rm": "delete"})


class UnknownCommand(click.UsageError):
    """Raised if a group does not include a command."""

    def __init__(self, name: str, context: click.Context) -> None:
        super().__init__(f"no such command: {name}", context)
        self.name = name


class CommandGroup(click.Group):
    """Represents a group whose commands can also be called by aliases."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in _ALIASES:
            found = super().get_command(ctx, _ALIASES[cmd_name])
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise UnknownCommand(name, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, command.get_short_help_str(_UNCUT))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class ServerCommand(click.Command):
    """Represents a command that parses its own arguments, so only its help names its options."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        options = re.findall(r"^  (-[\w-]+)", self.help or "", re.MULTILINE)
        return [CompletionItem(each) for each in options if each.startswith(incomplete)]


def file_names(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Let the shell complete a file or directory."""
    return [CompletionItem(begun, type="file")]


def command_group(**attributes: Any) -> Callable[[Callable[..., Any]], CommandGroup]:
    """Decorate a function as `click.group` does."""
    return click.group(cls=CommandGroup, **attributes)
