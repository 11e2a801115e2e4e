"""A table of a cluster's brokers for a terminal; a pipe gets plain lines instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from barnabas.cli.terminal_table import Cells, outside_text, show_table, size_text

if TYPE_CHECKING:
    from barnabas.cli.cluster.state_command import State


def show_brokers(
    state: State,
    leaders: Mapping[int, int],
    replicas: Mapping[int, int],
    console: Console | None = None,
) -> None:
    """A heading, and a row per broker; `leaders` and `replicas`: how many it has."""
    console = console or Console(highlight=False)
    heading = Text(f"Cluster {state.cluster.cluster_id}", style="bold")
    console.print(heading.append(f"  {state.summary}", style="dim"))
    rows: list[Cells] = [
        [
            str(broker.broker_id),
            outside_text(f"{broker.host}:{broker.port}"),
            outside_text(broker.rack or "-"),
            str(leaders.get(broker.broker_id, 0)),
            str(replicas.get(broker.broker_id, 0)),
            size_text(state.sizes.get(broker.broker_id)),
            Text("controller" * (broker.broker_id == state.cluster.controller_id), style="bold"),
        ]
        for broker in state.cluster.brokers
    ]
    titles = (">broker", "address", "rack", ">leaders", ">replicas", ">size", "")
    show_table(console, titles, rows)
