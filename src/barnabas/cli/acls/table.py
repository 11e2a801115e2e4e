"""A table of access rules for a terminal; a pipe gets plain lines instead."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from barnabas.cli.acls.text import resource_text
from barnabas.security.acl_binding import AclBinding, PermissionType, pascal_name


def show_rules(rules: Iterable[AclBinding], console: Console | None = None) -> None:
    """A row per rule; those that deny stand out."""
    console = console or Console(highlight=False)
    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in ("resource", "principal", "", "operation", "host"):
        table.add_column(title, overflow="fold")
    for pattern, entry in rules:
        denies = entry.permission is PermissionType.DENY
        table.add_row(
            Text(resource_text(pattern)),
            Text(entry.principal),
            Text(entry.permission.name.lower(), style="bold red" if denies else ""),
            Text(pascal_name(entry.operation)),
            Text("any" if entry.host == "*" else entry.host),
        )
    console.print(table if table.row_count else "No rules.")
