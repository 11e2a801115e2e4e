"""Answers questions about the hits of a pipeline: events, or lines of access logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.console.problem import WebProblem
from barnabas_pipeline.behaviour.rankings import own_host
from barnabas_pipeline.behaviour.schemas import EVENTS as ACCESSED
from barnabas_pipeline.pages.access_cards import AccessPages
from barnabas_pipeline.pages.access_hits import Known
from barnabas_pipeline.pages.event_cards import EventPages
from barnabas_pipeline.pages.filters import MISSING, Filters
from barnabas_pipeline.pages.hit_concerns import read_concerns
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.hits import Hits
from barnabas_pipeline.pages.kept_answers import KeptAnswers
from barnabas_pipeline.pages.model import Model
from barnabas_pipeline.pages.shapes import Answer, Card, Cell, Concern, Rows, Site
from barnabas_pipeline.pages.source import Options
from barnabas_pipeline.pages.table_rows import TableRows
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.schemas import EVENTS as TRACKED

_REFRESH_S: Final = 15


class HitModel:
    """Implements `Model` for hits."""

    def __init__(
        self, pages: EventPages | AccessPages, site: Site, concerns: list[Concern]
    ) -> None:
        self._concerns = concerns
        self._answers = KeptAnswers(self.compute)
        self.pages = pages
        self._site = site

    @property
    def site(self) -> Site:
        return self._site

    def answer(self, filters: Filters) -> Answer:
        return self._answers.answer(filters)

    def compute(self, filters: Filters) -> Answer:
        """Return all cards, which are always computed again."""
        selection, other = self._selected(filters)
        pages = self.pages
        cards = pages.cards(selection, other)
        return {
            "headlines": pages.headlines(selection, other),
            "timeline": pages.timeline(selection, other),
            "cards": [each for each in cards if each["rows"]],
            "concerns": self._concerns,
            "took_ms": 0.0,
            "matching": selection.matching,
        }

    def card(self, name: str, filters: Filters, options: Mapping[str, str]) -> Card:
        selection, other = self._selected(filters)
        card = self.pages.card(name, selection, other, options)
        if card is None:
            raise WebProblem(404, f"there is no card {name[:40]}")
        return card

    def rows(self, filters: Filters, options: Mapping[str, str]) -> Rows:
        return self.pages.rows(self._selected(filters)[0], options)

    def all_rows(self, filters: Filters, options: Mapping[str, str]) -> Iterator[list[Cell]]:
        return self.pages.all_rows(self._selected(filters)[0])

    def _selected(self, filters: Filters) -> tuple[Selection, Selection | None]:
        selection = Selection(self.pages.hits, self.pages.with_defaults(filters))
        other = filters.other
        return selection, None if other is None else selection.of_period(other)


def read_hit_model(
    kind: Literal["events", "access"],
    snapshot: Snapshot,
    batch: int,
    options: Options,
    before: Model | None = None,
) -> Model:
    """Return a model of these tables.

    `before`: the model of an earlier batch with the same options, whose rows are not read again.
    """
    schema = TRACKED if kind == "events" else ACCESSED
    pages: EventPages | AccessPages
    statuses: list[str] = []
    own = None
    known = before.pages if isinstance(before, HitModel) else None
    table = TableRows(snapshot.dataset("events"), schema)
    later = None if known is None else table.after(known.table)
    if later is None:
        known = None
    else:
        table = later
    if kind == "events":
        kept = known.kept if isinstance(known, EventPages) else None
        pages = EventPages(table, options, kept)
    else:
        own = own_host(snapshot)
        of_lines = Known(snapshot.frame("agents"), own, options.countries)
        lines = known.kept if isinstance(known, AccessPages) else None
        pages = AccessPages(table, of_lines, options, lines)
        statuses = pages.hits.dimensions["status"].values.names
    concerns = read_concerns(kind, snapshot, statuses, show=options.show_addresses)
    hits = pages.hits
    times = [int(hits.time_us.min()), int(hits.time_us.max())] if len(hits) else []
    site: Site = {
        "title": _title(hits) or own or "",
        "kind": kind,
        "dimensions": [
            {"name": name, "label": each.label} for name, each in hits.dimensions.items()
        ],
        "begins_at": times[0] // 1_000 if times else None,
        "ends_at": times[1] // 1_000 if times else None,
        "batch": batch,
        "has_search": False,
        "has_now": False,
        "refresh_s": _REFRESH_S,
    }
    pa.default_memory_pool().release_unused()  # what reading has used
    return HitModel(pages, site, concerns)


def _title(hits: Hits) -> str:
    """Return the most frequent host."""
    hosts = hits.dimensions["host"]
    counts = np.bincount(hosts.codes, minlength=len(hosts.values))
    counts[0] = 0
    name = hosts.values.names[int(counts.argmax())]
    return "" if name == MISSING else name
