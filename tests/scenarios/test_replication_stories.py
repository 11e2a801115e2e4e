"""Stories of lost records, step by step, that chance hardly ever produces.

Each ends well because of one guard: without it a record that consumers have seen is missing on a
replica that the controller may elect (StrongIsr).
"""

from __future__ import annotations

import pytest

from tests.kit.replication.replication_events import Events
from tests.kit.replication.replication_stage import BROKERS, LAG_MS, Stage


def _stage() -> tuple[Events, Stage]:
    """Broker 0 leads, all are in sync, nothing is written."""
    events = Events(1, may_be_unclean=False)
    return events, events.stage


def _deliver(stage: Stage, broker: int) -> None:
    """A fetch now, whatever else is on its way."""
    stage.ask(broker)
    stage.serve(stage.requests.pop())
    stage.take(broker, stage.brokers[broker].answers.pop())


def _lead(stage: Stage, leader: int, *notified: int) -> None:
    stage.elect(leader)
    for broker in notified:
        stage.tell(broker)


@pytest.mark.parametrize("is_delayed", [False, True], ids=["remembered", "delayed"])
def test_an_acknowledgement_of_an_older_epoch_counts_for_nothing(is_delayed: bool) -> None:
    """KIP-320b: the follower has truncated since, behind the back of the leader.

    What it had is remembered, or a fetch that says so arrives late.
    """
    events, stage = _stage()
    stage.produce(0, 2)
    _deliver(stage, 2)
    stage.ask(2)
    delayed = stage.requests.pop()
    if not is_delayed:
        stage.serve(delayed)
    assert delayed.fetch.offset == 2

    _lead(stage, 1, 1, 2)  # broker 0 does not hear of it
    stage.produce(1, 1)
    _deliver(stage, 2)
    assert stage.disks[2].log_end_offset == 0, "cut: the new leader never had these"

    _lead(stage, 0, 0, 1)
    if is_delayed:
        stage.serve(delayed)
    for _ in range(3):
        _deliver(stage, 1)
        events.check()
    assert stage.disks[1].records == stage.disks[0].records
    assert not stage.visible, "broker 2 is in sync by word of the controller, and has none of it"
    events.heal()
    assert len(stage.visible) == 2


def test_a_cut_is_fenced_by_the_epoch() -> None:
    """Faults 3, rule 2: what a deposed leader answered must not cut what is committed since."""
    events, stage = _stage()
    _lead(stage, 1, *BROKERS)
    stage.produce(1, 2)
    _deliver(stage, 2)

    _lead(stage, 0, 0, 2)
    stage.ask(2)
    stage.serve(stage.requests.pop())
    late = stage.brokers[2].answers.pop()
    assert late.got.diverging is not None

    _lead(stage, 1)
    stage.take_out(0)
    for broker in (1, 2):
        stage.tell(broker)
    _deliver(stage, 2)
    assert len(stage.visible) == 2
    stage.take(2, late)
    events.check()
    events.heal()


def test_a_proposal_that_was_overtaken_counts_until_the_controller_tells() -> None:
    """RE-9: the first answer was lost, and the ISR has been changed again since."""
    events, stage = _stage()
    stage.take_out(2)
    stage.tell(0)
    leader = stage.brokers[0]
    _deliver(stage, 2)
    (proposal,) = leader.proposed
    assert stage.judge(proposal).isr == (0, 1, 2)

    stage.take_out(1)
    refused = stage.judge(proposal)
    stage.carry_out(leader, leader.partition.on_isr_answer(proposal, refused, stage.now_ms))
    leader.proposed.clear()

    stage.now_ms += 2 * LAG_MS
    stage.produce(0, 1)
    _deliver(stage, 1)
    _deliver(stage, 1)
    assert not stage.visible, "broker 2 may be elected, and has none of it"
    events.check()
    stage.tell(0)
    _deliver(stage, 2)
    _deliver(stage, 2)
    assert len(stage.visible) == 1
    events.heal()
