"""What `faults.add` refuses: misspelt arguments, and rules that can never match."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ConfigError, KafkaError
from barnabas.protocol.api import APIS
from barnabas.testing.faults.answerable import ANY, ROWS, WHOLE
from barnabas.testing.faults.arguments import parse_rule

REFUSED = [
    ({"api": "Prodce", "cut": True}, "did you mean Produce?"),
    ({"api": "Produce", "error": "NOT_LEADER"}, "did you mean NOT_LEADER_OR_FOLLOWER?"),
    ({"api": "Produce", "error": "UNKNOWN_MEMBER_ID"}, "Produce never returns it"),
    ({"api": "Produce", "errror": "X"}, "did you mean error?"),
    ({"api": "Produce"}, "the rule does nothing"),
    ({"cut": True}, "api is missing"),
    ({"api": "Produce", "cut": True, "drop": True}, "cut and drop"),
    ({"api": "Produce", "cut": "yes"}, "must be of type bool"),
    ({"api": "Produce", "cut": True, "count": True}, "must be of type int"),
    ({"api": "Produce", "cut": True, "count": 0}, "count=0 never matches"),
    ({"api": "Produce", "cut": True, "after": -1}, "must not be negative"),
    ({"api": "Produce", "delay_ms": 600_001}, "at most 600000 ms"),
    ({"api": "Produce", "cut": True, "topic": ""}, "leave it out"),
    ({"api": "Produce", "cut": True, "partition": 0}, "needs a topic"),
    ({"api": "Heartbeat", "cut": True, "topic": "orders"}, "has no topics"),
    ({"api": "CreatePartitions", "cut": True, "topic": "o", "partition": 1}, "no partitions"),
    (
        {"api": "OffsetFetch", "error": "NOT_COORDINATOR", "topic": "orders"},
        "an error of a whole OffsetFetch",
    ),
    ({"api": "Produce", "cut": True, "broker": 4}, "the brokers are 1, 2"),
    ({"api": "Produce", "cut": True, "listener": "PLAINTXT"}, "did you mean PLAINTEXT?"),
    ({"api": "Produce", "cut": True, "replicas": True}, "followers do not send Produce"),
]


@pytest.mark.parametrize(("given", "reason"), REFUSED)
def test_tk_4_a_rule_that_cannot_be_right_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_rule(given, (1, 2), ("PLAINTEXT",))
    assert reason in str(refused.value)


def test_tk_4_the_table_of_errors_has_names_of_kafka_alone() -> None:
    apis = {api.name for api in APIS.values()}
    errors = {each.name for each in KafkaError.__subclasses__()}
    assert apis == ROWS.keys() | WHOLE.keys()
    assert ANY.union(*ROWS.values(), *WHOLE.values()) <= errors


@pytest.mark.parametrize("error", ["KAFKA_STORAGE_ERROR", "POLICY_VIOLATION"])
def test_tk_4_metadata_answers_with_why_a_topic_was_not_created(error: str) -> None:
    """Automatically: over a log that is there already, or against `create.topic.policy`."""
    assert parse_rule({"api": "Metadata", "error": error, "topic": "t"}, (1,), ("PLAINTEXT",))
