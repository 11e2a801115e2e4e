"""Losses that others had, as stories; each is seen when its guard is off (RE-10, DL-2, ZK-3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from barnabas.broker.controller import event_loop
from barnabas.cluster.store import Operation
from barnabas.controller.decision import split
from barnabas.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotController,
    OffsetNotAvailable,
    UnknownLeaderEpoch,
)
from barnabas.replication import follower
from barnabas.replication.follower import Aligned, EpochEnd, FetchFrom, OwnLog
from simulation.machines import Machines
from simulation.rules import Violation
from simulation.run import what_is_missing
from simulation.serving import Serving
from simulation.wire import AskLatest, Fetch, Wanted
from tests.simulation.planted import (
    BrokerThatIsSoonTrusted,
    CarelessFollower,
    ControllerThatSeesNoBounce,
    ReplicaThatTrustsItsWatermark,
    TrustingController,
    UnfencedLeader,
)
from tests.simulation.stage import NAME, Stage

TOPIC_ID = b"\x01" * 16


def breaks(rule: str, story: Callable[[Machines], object], machines: Machines) -> None:
    """The story's guard is off, and its checker finds it."""
    with pytest.raises(Violation) as broken:
        story(machines)
    assert broken.value.rule == rule


# --- KIP-101: alignment by epochs, not by watermarks ---------------------------------------------


def leader_changes_while_watermarks_are_stale(machines: Machines) -> Stage:
    stage = Stage(3, machines, min_isr=2)
    assert stage.write(count=3) == [True] * 3
    # Committed, and answered; the followers learn of it with their next answer.
    assert stage.hosted(3).partition.high_watermark < 3
    stage.cluster.brokers[1].session.expire()
    stage.until_led_by(2)
    stage.until_well()
    return stage


def test_kip_101a_a_follower_keeps_what_is_above_its_stale_watermark() -> None:
    stage = leader_changes_while_watermarks_are_stale(Machines())
    assert stage.values(2) == stage.values(3) == [1, 2, 3]


def test_kip_101a_is_seen_without_its_guard() -> None:
    machines = Machines(replica=ReplicaThatTrustsItsWatermark)
    breaks("truncation", leader_changes_while_watermarks_are_stale, machines)


def two_records_at_one_offset(machines: Machines) -> Stage:
    stage = Stage(2, machines)
    stage.write()
    stage.part(1, 2)
    assert stage.write(acks=1) == [True]
    stage.cluster.kill(1)
    stage.until_led_by(2)
    assert stage.write(acks=1) == [True]
    assert stage.last(1).offset == stage.last(2).offset
    stage.heal()
    stage.cluster.start(1)
    stage.until(lambda: stage.stored[1] == (2, 1))
    stage.write()
    stage.until_well()
    return stage


def test_kip_101b_two_records_at_one_offset_become_one() -> None:
    stage = two_records_at_one_offset(Machines())
    assert stage.values(1) == stage.values(2) == [1, 3, 4]


def test_kip_101b_is_seen_without_its_guard() -> None:
    breaks("log matching", two_records_at_one_offset, Machines(follower=CarelessFollower))


# --- KIP-279: two fast elections -----------------------------------------------------------------


def two_fast_elections() -> Stage:
    """Broker 1 has epoch 0 up to 7, broker 2 up to 2 and then records of its own."""
    stage = Stage(2, unclean=True)
    stage.write(count=2)
    stage.part(1, 2)
    stage.write(acks=1, count=5)
    stage.cluster.kill(1)
    stage.until_led_by(2)
    stage.write(acks=1, count=8)
    stage.cluster.kill(2)
    stage.wait(2500)
    stage.heal()
    stage.cluster.start(1)
    stage.until_led_by(1)
    stage.write(acks=1)
    stage.cluster.start(2)
    stage.until(lambda: NAME in stage.cluster.brokers[2].hosted)
    stage.wait(5000)
    return stage


def test_kip_279_what_the_leader_does_not_know_is_cut_to_the_last_common_epoch() -> None:
    stage = two_fast_elections()
    assert what_is_missing(stage.cluster) is None
    assert stage.values(1) == stage.values(2) == [1, 2, 3, 4, 5, 6, 7, 16]


def test_kip_279_is_seen_without_its_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_leaders_offset(log: OwnLog, leaders: EpochEnd, high_watermark: int) -> Aligned:
        return Aligned(min(leaders.end_offset, log.log_end_offset), is_final=True)

    monkeypatch.setattr(follower, "aligned_offset", by_the_leaders_offset)
    stage = two_fast_elections()
    assert stage.values(1)[:7] != stage.values(2)[:7]
    assert "of (1, 2)" in str(what_is_missing(stage.cluster))


# --- KIP-320: requests of another epoch are refused ----------------------------------------------


def a_zombie_is_asked(machines: Machines) -> int:
    """The answer of a deposed broker that does not know it, to a client in the new epoch."""
    stage = Stage(2, machines)
    stage.write()
    stage.cluster.network.cut(stage.controller, 1)
    stage.cluster.network.cut(2, 1)
    stage.cluster.network.cut(1, 2)
    stage.cluster.brokers[1].session.expire()
    stage.until_led_by(2)
    assert stage.leads(1)
    stage.until(lambda: stage.hosted(2).partition.isr == (2,))
    while stage.hosted(2).partition.high_watermark <= stage.hosted(1).partition.high_watermark:
        stage.write(acks=1)  # a client may yet ask the zombie
    epoch = stage.hosted(2).partition.leader_epoch
    question = AskLatest(NAME, TOPIC_ID, epoch)
    known = stage.bounds(2, question)
    assert known.error_code == 0
    answer = stage.bounds(1, question)
    if not answer.error_code:
        stage.cluster.checks.latest(NAME, known.latest, answer.latest)
    return answer.error_code


def test_kip_320a_a_zombie_refuses_who_knows_more() -> None:
    assert a_zombie_is_asked(Machines()) == UnknownLeaderEpoch.code


def test_kip_320a_is_seen_without_its_guard() -> None:
    breaks("hw monotonic", a_zombie_is_asked, Machines(partition=UnfencedLeader))


def a_fetch_of_an_older_epoch(machines: Machines) -> list[int]:
    """It arrives late, from followers that have cut their logs since."""
    stage = Stage(3, machines, min_isr=2)
    stage.write()
    stage.cluster.brokers[3].session.expire()
    stage.until(lambda: stage.hosted(1).partition.leader_epoch > 0)
    stage.until_well()
    stage.cut(2, 3)
    assert stage.write(acks=1) == [True]
    codes = []
    for replica in (2, 3):
        sent = FetchFrom(2, -1, 0, 0)
        epoch = stage.cluster.brokers[replica].epoch
        request = Fetch(replica, epoch, (Wanted(NAME, TOPIC_ID, sent),), 0)
        codes.append(stage.fetch(1, request).got.error_code)
    return codes


def test_kip_320b_a_fetch_of_an_older_epoch_does_not_raise_the_watermark() -> None:
    assert a_fetch_of_an_older_epoch(Machines()) == [FencedLeaderEpoch.code] * 2


def test_kip_320b_is_seen_without_its_guard() -> None:
    breaks("strong isr", a_fetch_of_an_older_epoch, Machines(partition=UnfencedLeader))


# --- KIP-966 and ABA: who may have lost records --------------------------------------------------


def the_last_replica_standing_loses_power(machines: Machines) -> Stage:
    stage = Stage(3, machines, min_isr=2)
    assert stage.write(count=5) == [True] * 5
    stage.cluster.kill(2)
    stage.until(lambda: stage.stored[1] == (1, 3))
    stage.cluster.kill(3)
    stage.until(lambda: stage.stored[1] == (1,))
    stage.lose_power(1, keep=2)
    stage.wait(3000)
    stage.cluster.start(1)
    stage.wait(3000)
    assert not stage.leads(1)  # it is the ISR, and it is alone
    stage.cluster.start(2)
    stage.cluster.start(3)
    stage.until_well()
    return stage


def test_kip_966_the_last_replica_standing_does_not_lead_by_the_isr() -> None:
    stage = the_last_replica_standing_loses_power(Machines())
    assert stage.values(1) == stage.values(2) == [1, 2, 3, 4, 5]


def test_kip_966_is_seen_without_its_guard() -> None:
    machines = Machines(controller=TrustingController)
    breaks("leader completeness", the_last_replica_standing_loses_power, machines)


def a_replica_bounces_unseen(machines: Machines) -> Stage:
    stage = Stage(3, machines, min_isr=2)
    assert stage.write(count=5) == [True] * 5
    bounced = stage.cluster.brokers[2]
    stage.cluster.pause(stage.controller, 400)
    stage.lose_power(2, keep=1)
    bounced.session.expire()
    stage.cluster.start(2)
    stage.wait(350)
    assert stage.cluster.brokers[2].epoch > 0
    stage.cut(2)
    stage.wait(1200)
    stage.cluster.kill(1)
    stage.wait(3000)
    stage.heal()
    stage.wait(2000)
    stage.cluster.start(1)
    stage.until_well()
    return stage


def test_aba_an_unnoticed_bounce_costs_the_place_in_the_isr() -> None:
    stage = a_replica_bounces_unseen(Machines())
    assert stage.values(2) == [1, 2, 3, 4, 5]
    assert stage.stored[0] == 3


def test_aba_is_seen_without_its_guard() -> None:
    machines = Machines(controller=ControllerThatSeesNoBounce)
    breaks("leader completeness", a_replica_bounces_unseen, machines)


def a_crash_after_a_power_cut(machines: Machines, *, stops_cleanly: bool = False) -> Stage:
    """It loses nothing more; but what was lost before is lost still."""
    stage = Stage(3, machines, min_isr=2)
    assert stage.write(count=5) == [True] * 5
    stage.cluster.kill(2)
    stage.until(lambda: stage.stored[1] == (1, 3))
    stage.cluster.kill(3)
    stage.until(lambda: stage.stored[1] == (1,))
    stage.lose_power(1, keep=2)
    stage.cluster.start(1)
    stage.wait(4000)
    if stops_cleanly:
        broker = stage.cluster.brokers[1]
        stage.cluster.world.start(broker.life, broker.leave())
        stage.until(lambda: 1 not in stage.cluster.brokers)
    else:
        stage.cluster.kill(1)
    stage.wait(2500)
    stage.cluster.start(1)
    stage.wait(2500)
    stage.cluster.start(2)
    stage.cluster.start(3)
    stage.until_well()
    return stage


@pytest.mark.parametrize("stops_cleanly", [False, True])
def test_kip_966_the_next_end_after_a_power_cut_does_not_make_the_log_whole(
    stops_cleanly: bool,
) -> None:
    stage = a_crash_after_a_power_cut(Machines(), stops_cleanly=stops_cleanly)
    assert stage.values(1) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("stops_cleanly", [False, True])
def test_kip_966_after_the_next_end_is_seen_without_its_guard(stops_cleanly: bool) -> None:
    machines = Machines(broker=BrokerThatIsSoonTrusted)
    story = partial(a_crash_after_a_power_cut, stops_cleanly=stops_cleanly)
    breaks("leader completeness", story, machines)


def test_a_watermark_from_before_a_loss_is_not_believed_after_the_next_crash() -> None:
    """The log is long again by then, with records that are not committed."""
    stage = Stage(2, min_isr=2)
    assert stage.write(count=5) == [True] * 5
    stage.until_well()
    for broker_id in (1, 2):
        stage.cluster.brokers[broker_id].checkpoint()
        stage.lose_power(broker_id, keep=2)
    stage.wait(2500)
    stage.cluster.start(1)
    stage.cluster.start(2)
    stage.until_led_by(1)
    stage.cluster.kill(2)
    assert stage.write(acks=1, count=3) == [True] * 3
    stage.cluster.kill(1)
    stage.cluster.start(1)
    stage.until_led_by(1)
    assert stage.log(1).log_end_offset == 5
    assert stage.hosted(1).partition.high_watermark == 2


# --- the watermark that clients see --------------------------------------------------------------


def a_new_leader_is_asked_at_once() -> int:
    stage = Stage(2, min_isr=2)
    assert stage.write(count=3) == [True] * 3
    epoch = stage.hosted(1).partition.leader_epoch
    known = stage.bounds(1, AskLatest(NAME, TOPIC_ID, epoch))
    assert known.latest == 3
    stage.cluster.brokers[1].session.expire()
    stage.cut(1)
    stage.until_led_by(2)
    assert stage.hosted(2).partition.high_watermark < 3
    answer = stage.bounds(2, AskLatest(NAME, TOPIC_ID, -1))
    if not answer.error_code:
        stage.cluster.checks.latest(NAME, known.latest, answer.latest)
    stage.heal()
    stage.until_well()
    assert stage.bounds(2, AskLatest(NAME, TOPIC_ID, -1)).latest == 3
    return answer.error_code


def test_hw_regression_is_hidden_from_clients() -> None:
    assert a_new_leader_is_asked_at_once() == OffsetNotAvailable.code


def test_hw_regression_is_seen_without_its_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Serving, "is_latest_uncertain", lambda self, replica: False)
    breaks("hw monotonic", lambda machines: a_new_leader_is_asked_at_once(), Machines())


# --- split controller ----------------------------------------------------------------------------


def a_deposed_controller_decides() -> Stage:
    """It stands still in the middle of a round, and goes on with the session that follows."""
    stage = Stage(3, min_isr=2)
    stage.write()
    old = stage.cluster.brokers[stage.controller]
    outcomes: list[int] = []

    async def shut_down(broker_id: int) -> None:
        epoch = stage.cluster.brokers[broker_id].epoch
        try:
            await old.controller.controlled_shutdown(broker_id, epoch)
            outcomes.append(0)
        except KafkaError as error:
            outcomes.append(error.code)

    old.loop.start(shut_down(2))
    old.loop.start(shut_down(3))
    stage.until(lambda: stage.stored[1] == (1, 3))
    stage.cluster.pause(stage.controller, 4000)
    stage.cut(stage.controller)  # no other broker refuses what it sends
    stage.until(lambda: stage.cluster.checks.controller_epoch == 2)
    stage.until(lambda: old.session.session_id > 0, within_ms=6000)
    assert old.controller.is_active, "it does not know of it yet"
    before = stage.cluster.checks.history(NAME).stored
    stage.until(lambda: len(outcomes) == 2)
    assert outcomes == [0, NotController.code]
    assert stage.cluster.checks.history(NAME).stored == before
    stage.heal()
    stage.until_well()
    return stage


def test_split_controller_the_old_one_writes_nothing() -> None:
    assert a_deposed_controller_decides().stored == (1, (1, 3, 2))


def test_split_controller_is_seen_without_its_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfenced(operations: Sequence[Operation]) -> list[Sequence[Operation]]:
        return [some[1:] for some in split(operations) if len(some) > 1]

    monkeypatch.setattr(event_loop, "split", unfenced)
    breaks("fencing", lambda machines: a_deposed_controller_decides(), Machines())
