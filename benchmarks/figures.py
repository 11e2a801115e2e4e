"""What a benchmark found, beside what it was to find: rows, a table of them, and JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Figure(NamedTuple):
    """One number. `other` is the same of what it is compared with (a bare server, Kafka)."""

    what: str
    unit: str
    reached: float
    goal: float | None = None
    at_most: bool = True
    """The goal is an upper bound; else a lower one."""
    other: float | None = None
    command: str = ""

    @property
    def is_reached(self) -> bool:
        if self.goal is None:
            return True
        return self.reached <= self.goal if self.at_most else self.reached >= self.goal

    @property
    def off(self) -> float | None:
        """How far it is from its goal: 1 is just reached, 2 is twice off, below 1 is better."""
        if self.goal is None or not self.goal or not self.reached:
            return None
        return self.reached / self.goal if self.at_most else self.goal / self.reached

    @property
    def ratio(self) -> float | None:
        return self.reached / self.other if self.other else None


def parser_of(document: str | None) -> argparse.ArgumentParser:
    """What every benchmark understands; `document` is what its module says of itself."""
    parser = argparse.ArgumentParser(description=(document or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    return parser


def table(title: str, figures: Iterable[Figure], other: str = "") -> Table:
    """Rows with goal and verdict; `other` names what is compared with, if something is."""
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    shown.add_column("figure", overflow="fold")
    for name in ("unit", "reached", "goal", "off"):
        shown.add_column(name, justify="left" if name == "unit" else "right", no_wrap=True)
    if other:
        shown.add_column(other, justify="right", no_wrap=True)
        shown.add_column("ratio", justify="right", no_wrap=True)
    for figure in figures:
        shown.add_row(*_cells(figure, compared=bool(other)))
    return shown


def _cells(figure: Figure, *, compared: bool) -> list[str]:
    goal = off = ""
    if figure.goal is not None:
        goal = f"{'<=' if figure.at_most else '>='} {number(figure.goal)}"
        colour = "green" if figure.is_reached else "red"
        off = f"[{colour}]{figure.off or 0:.2f}[/{colour}]"
    cells = [figure.what, figure.unit, number(figure.reached), goal, off]
    if compared:
        other, ratio = figure.other, figure.ratio
        cells.append("" if other is None else number(other))
        cells.append("" if ratio is None else f"{ratio:.2f}")
    return cells


def number(value: float) -> str:
    """Three digits that say something."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or not value else f"{value:.3f}"


def show(title: str, figures: Sequence[Figure], json_file: Path | None, other: str = "") -> None:
    """A table, and the file if one was asked for."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table(title, figures, other))
    if json_file is not None:
        write_json(json_file, figures)


def write_json(path: Path, figures: Iterable[Figure]) -> None:
    """One object a figure, so that documents can be filled from it."""
    rows = [{**figure._asdict(), "off": figure.off, "ratio": figure.ratio} for figure in figures]
    path.write_text(json.dumps(rows, indent=2) + "\n")
