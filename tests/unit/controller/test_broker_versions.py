"""RE-10: a broker that does not know the controller's versions leads and follows nothing."""

from __future__ import annotations

from barnabas.cluster.image import NO_LEADER
from barnabas.controller.broker_versions import why_left_out
from barnabas.protocol.api import APIS, FETCH, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from barnabas.types import TopicPartition
from tests.unit.controller.stage import T0, Stage, broker, led, topic

OURS = {key: (api.min_version, api.max_version) for key, api in APIS.items()}
OF_2_3 = {
    **OURS,
    FETCH.key: (0, 11),
    LEADER_AND_ISR.key: (0, 2),
    UPDATE_METADATA.key: (0, 5),
    STOP_REPLICA.key: (0, 1),
}
OF_2_8 = {
    **OURS,
    FETCH.key: (0, 12),
    LEADER_AND_ISR.key: (0, 5),
    UPDATE_METADATA.key: (0, 7),
    STOP_REPLICA.key: (0, 3),
}
REASON = why_left_out(3, OF_2_3)


def show(
    stage: Stage, broker_id: int, versions: dict[int, tuple[int, int]], epoch: int = 0
) -> None:
    decided = stage.controller.versions_known(broker_id, epoch or 100 + broker_id, versions)
    stage.carry_out(decided)


def test_each_version_that_the_cluster_sends_is_required() -> None:
    """MX-1: Kafka 2.8 has all of them."""
    assert why_left_out(3, OURS) is None
    assert why_left_out(3, OF_2_8) is None
    assert why_left_out(3, {**OURS, FETCH.key: (4, 12), LEADER_AND_ISR.key: (7, 9)}) is None
    for api, least, most in ((LEADER_AND_ISR, 5, 7), (UPDATE_METADATA, 7, 8), (STOP_REPLICA, 3, 4)):
        for version, lowest, highest in ((least, 0, least - 1), (most, most + 1, most + 1)):
            reason = why_left_out(3, {**OURS, api.key: (lowest, highest)})
            assert reason is not None
            assert f"{api.name} {version} (it has {lowest} to {highest})" in reason
    assert "Fetch 12 (it has 4 to 11)" in (why_left_out(3, {**OURS, FETCH.key: (4, 11)}) or "")
    assert "StopReplica 3 (it has none)" in (why_left_out(3, {}) or "")


def test_a_broker_that_is_too_old_leads_nothing_and_is_in_no_isr() -> None:
    """What was decided before its versions were known is decided again, without it."""
    alone, other, elsewhere = (TopicPartition("t", number) for number in (1, 2, 3))
    stage = Stage(topic("t", led(3, 1, 2), led(3), led(1, 2, 3), led(1, 2)))
    show(stage, 3, OF_2_3)
    assert (stage[T0].leader, stage[T0].isr) == (1, (1, 2))
    assert (stage[alone].leader, stage[alone].isr) == (NO_LEADER, (3,))
    assert (stage[other].leader, stage[other].isr) == (1, (1, 2))
    assert stage.decision.notes == (REASON,)
    assert stage.controller.left_out == (REASON,)
    assert 3 not in stage.controller.image.brokers, "so no topic is placed on it"
    assert not [to for to, _ in stage.sent() if to == 3]
    assert stage.propose(1, 2).error_code == 0
    decision, outcomes = stage.controller.reassign({elsewhere: [1, 3]})
    assert decision.operations == ()
    assert "brokers [3] are not live" in str(outcomes[elsewhere])


def test_it_is_left_out_until_it_registers_again() -> None:
    """Others that come and go change nothing of it, and it is named once."""
    stage = Stage(topic("t", led(3, 1, 2)))
    show(stage, 3, OF_2_3)
    show(stage, 3, OF_2_3)
    assert stage.decision.notes == ()
    stage.go(2)
    assert stage.decision.notes == ()
    assert stage[T0].isr == (1,)
    show(stage, 2, OF_2_3)
    assert stage.controller.left_out == (REASON,), "2 is not live"
    stage.come(broker(2), broker(4))
    show(stage, 4, OF_2_3)
    assert len(stage.controller.left_out) == 2
    assert sorted(stage.controller.image.brokers) == [1, 2]
    stage.come(broker(3, epoch=200))
    assert sorted(stage.controller.image.brokers) == [1, 2, 3]
    assert stage.notified(3)
    show(stage, 3, OF_2_3)  # what its former registration has answered
    show(stage, 3, OURS, epoch=200)
    assert sorted(stage.controller.image.brokers) == [1, 2, 3]
    assert stage.controller.left_out == (why_left_out(4, OF_2_3),)
    stage.go(4)
    assert stage.controller.left_out == ()


def test_a_broker_leads_before_its_versions_are_known() -> None:
    """An election waits for no answer."""
    stage = Stage(topic("t", led(1, 3)))
    stage.live.pop(1)
    stage.carry_out(stage.controller.brokers_changed(dict(stage.live)))
    assert stage[T0].leader == 3


def test_the_controller_itself_is_never_left_out() -> None:
    stage = Stage(topic("t", led(1, 3)))
    show(stage, 1, {})
    assert stage.controller.left_out == ()
    assert stage[T0].leader == 1
