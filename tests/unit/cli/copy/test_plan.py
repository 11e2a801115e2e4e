"""What is created, what is left out, and what is in the way."""

from __future__ import annotations

import pytest

from barnabas.cli.copy.plan import TopicFacts, TopicPlan, is_wanted, plan_topics

ORDERS = TopicFacts("orders", "1", 3, 3, {"retention.ms": "5"})


def one(topic: TopicFacts, *target: TopicFacts, copied: str = "", brokers: int = 3) -> TopicPlan:
    (plan,) = plan_topics([topic], target, {topic.name: copied}, brokers)
    return plan


def test_a_topic_is_created_with_its_own_configs() -> None:
    plan = one(ORDERS)
    assert (plan.exists, plan.replicas, plan.notes, plan.problem) == (False, 3, (), "")
    assert plan.first_configs == plan.configs == {"retention.ms": "5"}


def test_a_topic_has_no_more_replicas_than_there_are_brokers() -> None:
    plan = one(ORDERS, brokers=1)
    assert (plan.replicas, plan.notes) == (1, ("1 replica instead of 3",))
    (chosen,) = plan_topics([ORDERS], [], {}, 3, 2)
    assert chosen.replicas == 2


def test_internal_topics_are_left_out() -> None:
    internal = ORDERS._replace(name="__consumer_offsets", is_internal=True)
    progress = ORDERS._replace(name="_barnabas_copy")
    assert plan_topics([internal, progress], [], {}, 1) == []


@pytest.mark.parametrize("name", ["remote.storage.enable", "local.retention.ms", "unknown.key"])
def test_configs_that_barnabas_lacks_are_named(name: str) -> None:
    plan = one(ORDERS._replace(configs={name: "1"}))
    assert plan.configs == {}
    assert plan.notes == (f"config {name}=1 is left out, because Barnabas does not have it",)


def test_throttles_are_left_out_without_a_word() -> None:
    plan = one(ORDERS._replace(configs={"leader.replication.throttled.replicas": "*"}))
    assert (plan.configs, plan.notes) == ({}, ())


def test_times_of_the_broker_are_kept_while_records_are_copied() -> None:
    configs = {"message.timestamp.type": "LogAppendTime"}
    plan = one(ORDERS._replace(configs=configs))
    assert plan.has_append_time and "at the end of the run" in plan.notes[0]
    assert plan.configs == configs
    assert plan.first_configs == {"message.timestamp.type": "CreateTime"}


@pytest.mark.parametrize(
    ("known", "copied", "problem"),
    [
        (ORDERS._replace(topic_id="2", is_empty=True), "", ""),
        (ORDERS._replace(topic_id="2"), "2", ""),
        (ORDERS._replace(topic_id="2"), "1", "contains records and is no copy"),
        (ORDERS._replace(topic_id="2"), "", "contains records and is no copy"),
        (ORDERS._replace(partitions=2, is_empty=True), "", "2 partitions, not 3; `barnabas topics"),
        (ORDERS._replace(partitions=4, is_empty=True), "", "4 partitions, not 3"),
    ],
)
def test_only_empty_topics_and_copies_are_written_to(
    known: TopicFacts, copied: str, problem: str
) -> None:
    plan = one(ORDERS, known, copied=copied)
    assert plan.exists
    assert problem in plan.problem and bool(problem) == bool(plan.problem)


def test_patterns_choose_by_the_whole_name() -> None:
    assert is_wanted("web-1", []) and is_wanted("web-1", ["x", "web-*"])
    assert not is_wanted("a-web-1", ["web-*"])
