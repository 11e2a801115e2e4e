"""SP-1: the connector's option names; whatever is wrong is said with the option's name."""

from __future__ import annotations

import re

import pytest

from barnabas.errors import ConfigError
from barnabas.types import TopicPartition
from pyspark_barnabas.bounds import EARLIEST, LATEST
from pyspark_barnabas.given import duration_ms
from pyspark_barnabas.options import sink_options, source_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
WEB = {**SERVERS, "subscribe": "web"}


def test_defaults_are_the_connectors() -> None:
    options = source_options(WEB)
    assert options.subscription.topics == ("web",)
    assert (options.starting.offset, options.ending.offset) == (EARLIEST, LATEST)
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.max_offsets_per_trigger is None
    assert options.max_trigger_delay_ms == 15 * 60_000
    assert source_options(WEB, streaming=False).starting.offset == EARLIEST
    assert source_options(WEB, streaming=True).starting.offset == LATEST, "what comes from now on"


def test_names_are_case_insensitive_even_in_a_plain_dictionary() -> None:
    options = source_options(
        {"KAFKA.bootstrap.servers": "h:1", "SUBSCRIBE": "Web", "maxoffsetspertrigger": "7"}
    )
    assert options.max_offsets_per_trigger == 7
    assert options.subscription.topics == ("Web",), "the case of a value is kept"


def test_bootstrap_servers_with_and_without_the_prefix() -> None:
    options = source_options({"bootstrap.servers": "a:1,b:2", "subscribe": "web"})
    assert options.client["bootstrap.servers"] == "a:1,b:2"


def test_kafka_properties_reach_the_client() -> None:
    options = source_options(
        {
            **WEB,
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.isolation.level": "read_committed",
            "kafka.max.poll.interval.ms": "1",
            "kafka.security.protocol": "PLAINTEXT",
        }
    )
    assert options.client["security.protocol"] == "PLAINTEXT"
    assert "1000" not in repr(options), "SE-6: properties may be secrets"
    assert options.client["max.partition.fetch.bytes"] == "1000"
    assert options.client["isolation.level"] == "read_committed"
    assert "max.poll.interval.ms" not in options.client


def test_subscriptions() -> None:
    assert source_options({**SERVERS, "subscribe": " a, b ,a"}).subscription.topics == ("a", "b")
    assert source_options({**SERVERS, "subscribePattern": "web-.*"}).subscription.pattern
    assigned = source_options({**SERVERS, "assign": '{"a": [0, 2]}'}).subscription.partitions
    assert assigned == (TopicPartition("a", 0), TopicPartition("a", 2))


def test_bounds() -> None:
    offsets = source_options({**WEB, "startingOffsets": '{"web": {"0": 5, "1": -2}}'}).starting
    assert offsets.offsets == {TopicPartition("web", 0): 5, TopicPartition("web", 1): EARLIEST}
    assert source_options({**WEB, "startingOffsets": "Latest"}).starting.offset == LATEST
    by_time = source_options({**WEB, "endingOffsetsByTimestamp": '{"web": {"0": 9}}'}).ending
    assert by_time.timestamps_ms == {TopicPartition("web", 0): 9}
    assert by_time.latest_if_no_match


def test_a_timestamp_counts_before_offsets() -> None:
    options = source_options({**WEB, "startingTimestamp": "99", "startingOffsets": "latest"})
    assert options.starting.timestamp_ms == 99
    assert not options.starting.latest_if_no_match
    latest = {**WEB, "startingTimestamp": "99", "startingOffsetsByTimestampStrategy": "LATEST"}
    assert source_options(latest).starting.latest_if_no_match


def test_durations() -> None:
    texts = ("20", "20ms", "2s", "15m", "3min", "1h", "2D", "5000us")
    assert [duration_ms(text) for text in texts] == [
        20, 20, 2000, 900_000, 180_000, 3_600_000, 172_800_000, 5,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscribe": "web"}, "kafka.bootstrap.servers is missing"),
        ({**SERVERS}, "subscribe .* subscribePattern .* assign"),
        ({**WEB, "assign": '{"a": [0]}'}, "subscribe and assign exclude each other"),
        ({**WEB, "maxOffsetPerTrigger": "5"}, "did you mean maxOffsetsPerTrigger?"),
        ({**WEB, "kafka.fetch.max.byte": "5"}, "kafka.fetch.max.byte is unknown; did you mean"),
        ({**WEB, "kafka.isolation.level": "none"}, "kafka.isolation.level: 'none'"),
        ({**WEB, "kafka.bootstrap.servers": "nohost"}, "kafka.bootstrap.servers: 'nohost'"),
        ({**WEB, "kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({**WEB, "provider": "barnabas", "owner": "me"}, "Use CREATE TEMPORARY VIEW"),
        ({**WEB, "kafka.security.protocol": "LSS"}, "security.protocol: .LSS. is not one of"),
        ({**WEB, "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger='0': expected a positive"),
        ({**WEB, "failOnDataLoss": "yes"}, "failOnDataLoss='yes': expected true or false"),
        ({**WEB, "startingOffsets": "soonest"}, "startingOffsets='soonest': expected earliest"),
        ({**WEB, "startingOffsets": '{"web": {"0": -3}}'}, "-1 for latest or -2 for earliest"),
        ({**WEB, "startingOffsets": '{"web": {"0": 1.5}}'}, "expected earliest, latest, or JSON"),
        ({**WEB, "startingTimestamp": "yesterday"}, "startingTimestamp='yesterday'"),
        ({**WEB, "maxTriggerDelay": "soon"}, "maxTriggerDelay='soon'"),
        ({**WEB, "subscribe": " , "}, "expected topic names"),
        ({**SERVERS, "subscribePattern": "("}, "subscribePattern.*regular expression"),
        ({**SERVERS, "assign": '{"a": 0}'}, "assign"),
        ({**SERVERS, "assign": "{}"}, "assign"),
        ({**WEB, "endingOffsets": "earliest"}, "endingOffsets=earliest would read nothing"),
        ({**WEB, "startingOffsetsByTimestampStrategy": "x"}, "Strategy='x'"),
        (
            {**WEB, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            r"minOffsetsPerTrigger \(9\) is greater",
        ),
    ],
)
def test_mistakes_are_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source_options(given)


def test_a_batch_does_not_start_at_the_end_nor_a_stream_end() -> None:
    with pytest.raises(ConfigError, match="startingOffsets=latest would read nothing"):
        source_options({**WEB, "startingOffsets": "latest"}, streaming=False)
    with pytest.raises(ConfigError, match=re.escape("-1 (latest) for web-0")):
        source_options({**WEB, "startingOffsets": '{"web": {"0": -1}}'}, streaming=False)
    with pytest.raises(ConfigError, match="endingOffsets is for batch queries"):
        source_options({**WEB, "endingOffsets": "latest"}, streaming=True)


def test_the_sinks_options() -> None:
    options = sink_options({**SERVERS, "topic": "out", "kafka.acks": "1", "queryname": "q"})
    assert options.topic == "out"
    assert options.client["acks"] == "1"
    with pytest.raises(ConfigError, match="no option 'subscribe'"):
        sink_options({**WEB})
    with pytest.raises(ConfigError, match=r"kafka\.acks: '7'"):
        sink_options({**SERVERS, "kafka.acks": "7"})
