"""Lists what needs attention in the tables, whatever the filters are.

The lists of the pages in files are used, with an address that shows the period of each matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from barnabas_pipeline.accounts import read_accounts, read_dead_letters
from barnabas_pipeline.behaviour import attention
from barnabas_pipeline.behaviour.timeline import timeline_of
from barnabas_pipeline.page.addresses import mask_addresses
from barnabas_pipeline.page.attention import Concern as Found
from barnabas_pipeline.pages.filters import query
from barnabas_pipeline.pages.shapes import Concern
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking import headlines
from barnabas_pipeline.tracking.figures import as_statuses

_MARGIN: Final = timedelta(hours=1)


def read_concerns(
    kind: Literal["events", "access"], snapshot: Snapshot, statuses: Sequence[str], *, show: bool
) -> list[Concern]:
    """Return what needs attention.

    `statuses`: the status codes in the table. `show`: whether full addresses may be shown.
    """
    mask: Callable[[str], str] = str if show else mask_addresses
    accounts, _ = read_accounts(snapshot)
    letters = read_dead_letters(snapshot, mask)
    traffic = snapshot.frame("traffic")
    if kind == "events":
        timeline = timeline_of(traffic, as_statuses(traffic))
        found = headlines.concerns_of(accounts, letters, timeline)
    else:
        timeline = timeline_of(traffic, snapshot.frame("statuses"))
        found = attention.concerns_of(accounts, letters, timeline)
    offset = timedelta(minutes=max(timeline.offsets_minutes, default=0))
    failures = [each for each in statuses if each.startswith("5")]
    return [_concern(each, offset, failures) for each in found]


def _concern(found: Found, offset: timedelta, failures: Sequence[str]) -> Concern:
    link = ""
    if found.span is not None:
        begin, end = (at - offset for at in found.span)
        if found.card == attention.RESPONSES:
            # Robots' requests count, too.
            both = ("people", "robots")
            link = query({**_period(begin, end), "status": failures, "who": both})
        else:
            link = query(_period(begin - _MARGIN, end + _MARGIN))
    reasons = [f"{reason}: {count:,}" for reason, count in found.reasons]
    return {
        "title": found.title,
        "about": found.about,
        "is_urgent": found.is_urgent,
        "link": link,
        "examples": [*reasons, *(f"{place}: {text}" for place, text in found.examples)],
    }


def _period(begin: datetime, end: datetime) -> dict[str, str]:
    return {"since": f"{begin:%Y-%m-%dT%H:%M}", "until": f"{end:%Y-%m-%dT%H:%M}"}
