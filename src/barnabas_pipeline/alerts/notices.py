"""Decides what to send: each sink receives each incident once when it is found, and once more when
it has ended. Pure.

known before + found ─▶ known after ─▶ due: an incident, a sink, firing or resolved
                             ▲                            │
                             └──────── after_sending ─────┘
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from barnabas_pipeline.alerts.incidents import Incident
from barnabas_pipeline.alerts.rules import Rules

_log = logging.getLogger(__name__)

FIRING: Final = "firing"
RESOLVED: Final = "resolved"
MOST_KNOWN: Final = 10_000
"""The maximum number of incidents remembered; further incidents wait until some have been
forgotten.
"""


class Known(NamedTuple):
    """Represents an incident and the last status that was sent to each sink."""

    incident: Incident
    sent: Mapping[str, str] = {}

    def after_sending(self, sink: str, status: str) -> Known:
        return self._replace(sent={**self.sent, sink: status})

    def due(self, sink: str) -> str | None:
        """Return the status that is due to be sent to a sink, or None."""
        sent = self.sent.get(sink)
        # Even an incident that began and ended between two evaluations is first sent as firing. So
        # is an incident that was sent as resolved and has been continued by late lines.
        if sent is None or (sent == RESOLVED and self.incident.end is None):
            return FIRING
        return RESOLVED if sent == FIRING and self.incident.end is not None else None


def recipients(known: Known, rules: Rules) -> tuple[str, ...]:
    """Return the sinks to which an incident's alert is sent.

    If the alert has been removed from the file, the sinks that received the incident are also
    notified of its end.
    """
    for rule in rules.alerts:
        if rule.name == known.incident.alert:
            return rule.sinks
    return tuple(each.name for each in rules.sinks if each.name in known.sent)


def update(
    known: Sequence[Known], found: Sequence[Incident], rules: Rules, now: datetime
) -> list[Known]:
    """Return the known incidents, updated with the incidents in `found`."""
    of_subject: dict[tuple[str, str], list[Known]] = {}
    for each in known:
        of_subject.setdefault((each.incident.alert, each.incident.subject), []).append(each)
    result, new = [], []
    for incident in found:
        before = of_subject.get((incident.alert, incident.subject), [])
        same = next((each for each in before if incident.is_of(each.incident)), None)
        if same is None:
            new.append(Known(incident))
            continue
        before.remove(same)
        # Its identity stays the same even if late lines have moved its start.
        result.append(same._replace(incident=incident._replace(start=same.incident.start)))
    for each in (each for some in of_subject.values() for each in some):
        ended = each
        if each.incident.end is None:
            ended = each._replace(incident=each.incident._replace(end=now))
        # Older incidents are never found again, so forget them once no notice is due.
        is_due = any(ended.due(sink) is not None for sink in recipients(ended, rules))
        is_recent = ended.incident.end is not None and ended.incident.end >= now - rules.lookback
        if is_due or is_recent:
            result.append(ended)
    # Never drop a known incident, because it would be found and sent again.
    room = max(0, MOST_KNOWN - len(result))
    if len(new) > room:
        _log.warning(
            "there are more than %d incidents: %d of them are left out", MOST_KNOWN, len(new) - room
        )
    result += new[:room]
    return sorted(result, key=lambda each: (each.incident.start, each.incident.id))
