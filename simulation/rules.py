"""The error by which a broken rule of the small simulation ends a run."""

from __future__ import annotations

RULES = {
    "log matching": "below their high watermarks all replicas have the same records",
    "leader completeness": "a new leader has every record that was committed",
    "strong isr": "every replica that may be elected has every committed record",
    "promise": "what acks=all was answered for is committed",
    "hw monotonic": "a leader's high watermark never falls, nor does the one that a client sees",
    "hw in log": "no high watermark is above its log's end",
    "one leader": "a leader epoch has one leader",
    "epochs": "leader, controller and broker epochs only grow",
    "maximal isr": "the leader waits for every replica that may be elected",
    "expansion": "no replica joins the ISR below the leader's epoch start or its high watermark",
    "fencing": "a deposed controller changes nothing",
    "election": "outside of the ISR a leader is elected only where that is allowed",
    "dense": "offsets are dense, and epochs in a log only grow",
    "truncation": "no committed record is ever cut",
    "idempotence": "each producer's records are there once, in order, without a gap",
    "consumer": "a consumer reads what is committed, and nothing else",
    "namesake": "nothing of a deleted topic is in the one that got its name",
    "leftovers": "of a deleted topic no node stays, and no log of its replicas",
    "transaction": "a transaction is there whole or not at all, as its producer was answered",
    "offsets": "no committed offset is lost, nor overwritten by a member that was replaced",
    "outcome": "coordinators follow each other: no outcome changes, no epoch falls",
    "assertions": "the machines' own assertions hold, and no error is raised that is not expected",
    "liveness": "after the faults everything comes back",
}


class Violation(Exception):
    """A rule is broken."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule} ({RULES[rule]}): {text}")
        self.rule = rule
        self.text = text
