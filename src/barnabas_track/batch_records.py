"""Turns a checked batch into records: valid events, and dead letters with their reasons. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.client.producer.batch import ProducerRecord
from barnabas_collector.dead_letter_headers import REASON
from barnabas_track.event_batch import CheckedBatch, Rejection, encode
from barnabas_track.outbox import Outgoing

ID: Final = "id"
"""The record header with the event's id."""
# Programs identify themselves with such words, and few browsers use them.
_ROBOTS: Final = (
    "bot",
    "crawl",
    "spider",
    "slurp",
    "headless",
    "preview",
    "curl/",
    "python",
    "http:",
)


class BatchOrigin(NamedTuple):
    """Contains what the server adds to each event of a batch."""

    received_ms: int
    is_robot: bool
    is_private: bool
    """The visitor asked not to be followed (DNT, Global Privacy Control)."""
    country: str | None = None
    """The ISO 3166 code of the country from which the batch was sent, if it is known."""

    @property
    def fields(self) -> bytes:
        """The additional fields of an event, as the end of a JSON object."""
        bot, private = (b"true" if each else b"false" for each in self[1:3])
        country = b"" if self.country is None else b',"country":"%b"' % self.country.encode()
        received = self.received_ms
        return b',"received":%d,"bot":%b,"private":%b%b}' % (received, bot, private, country)


def records_of(
    batch: CheckedBatch, origin: BatchOrigin, topic: str, rejected_topic: str
) -> list[Outgoing]:
    """Return the records of a batch."""
    added = origin.fields
    outgoing = []
    for event in batch.events:
        if origin.is_private:
            event.pop("visitor", None)
            event.pop("session", None)
        outgoing.append(_event(event, added, topic))
    for rejection in batch.rejected:
        outgoing.append(_letter(rejection, rejected_topic, is_private=origin.is_private))
    return outgoing


def is_robot(agent: str) -> bool:
    """Return whether a user agent is missing or belongs to a program."""
    name = agent.lower()
    return not name or any(word in name for word in _ROBOTS)


def _event(event: Mapping[str, Any], added: bytes, topic: str) -> Outgoing:
    id_ = event["id"]
    visitor = event.get("visitor")
    key = None if visitor is None else visitor.encode()
    # An event is never an empty object, because some of its fields are required.
    value = encode(event)[:-1] + added
    return Outgoing(id_, ProducerRecord(topic, value, key, headers=((ID, id_.encode()),)))


def _letter(rejection: Rejection, topic: str, *, is_private: bool) -> Outgoing:
    """Return a dead letter. If `is_private` is true, the letter contains only the reason."""
    reason = rejection.reason.encode()
    digest = hashlib.blake2b(reason + b"\0" + rejection.text, digest_size=16).hexdigest()
    text = b"" if is_private else rejection.text
    # Without a source topic in its headers, `dead-letters replay` does not send the letter to the
    # topic of valid events.
    record = ProducerRecord(topic, text, headers=((REASON, reason),))
    # An event's id never contains a dot.
    return Outgoing(f"letter.{digest}", record)
