"""A table of transactional ids for a terminal; a pipe gets Kafka's lines instead."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from barnabas.cli.terminal_table import Cells, outside_text, show_table
from barnabas.client.admin.transaction_admin import TransactionListing

_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")


def show_listings(listings: Iterable[TransactionListing], console: Console | None = None) -> None:
    """A row per id; transactions that are open stand out."""
    rows: list[Cells] = [
        [
            outside_text(each.transactional_id),
            Text(each.state, style="yellow" if each.state in _OPEN else ""),
            str(each.coordinator_id),
            str(each.producer_id),
        ]
        for each in listings
    ]
    titles = ("transactional id", "state", ">coordinator", ">producer id")
    show_table(console or Console(highlight=False), titles, rows, "No transactional ids.")
