"""UX-6: what Kafka's tools print, and what the console producer reads, without a broker."""

from __future__ import annotations

import pytest

from barnabas.cli.groups.rows import DescribedGroup, GroupRow
from barnabas.cli.kafka.broker_api_versions import broker_text
from barnabas.cli.kafka.console_producer import LineReader, NoKey
from barnabas.cli.kafka.group_tables import (
    deleted_offsets_text,
    list_text,
    members_text,
    without_unread,
)
from barnabas.cli.kafka.java_errors import java_text
from barnabas.cli.kafka.message_layout import default_layout
from barnabas.cli.kafka.options import BadCommandLine
from barnabas.cli.kafka.tool import NotCovered
from barnabas.client.admin.admin import BrokerDescription
from barnabas.client.admin.group_admin import GroupDescription, GroupListing, MemberDescription
from barnabas.client.channel import BrokerAddress
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.errors import GroupIdNotFound, InvalidTopic, TopicAlreadyExists
from barnabas.types import TopicPartition

RECORD = ConsumerRecord("t", 1, 5, 1000, 0, b"k", b"v", (("h", b"1"), ("i", None)))
BARE = ConsumerRecord("t", 1, 6, -1, 0, None, None, ())


def shown(record: ConsumerRecord, **properties: str) -> bytes:
    named = {name.replace("_", "."): text for name, text in properties.items()}
    return default_layout(named)(record)


def test_a_record_is_its_value_unless_more_is_asked_for() -> None:
    assert shown(RECORD) == b"v\n"
    assert shown(BARE) == b"null\n"
    everything = dict.fromkeys(
        ("print_key", "print_headers", "print_offset", "print_partition", "print_timestamp"), "true"
    )
    assert shown(RECORD, **everything) == (
        b"CreateTime:1000\tPartition:1\tOffset:5\th:1,i:null\tk\tv\n"
    )
    assert shown(BARE, **everything) == (
        b"NO_TIMESTAMP\tPartition:1\tOffset:6\tNO_HEADERS\tnull\tnull\n"
    )
    appended = RECORD._replace(timestamp_type=1)
    assert shown(appended, print_timestamp="true") == b"LogAppendTime:1000\tv\n"


def test_separators_and_the_word_for_null_can_be_chosen() -> None:
    chosen = {
        "print_key": "true",
        "print_headers": "TRUE",
        "print_value": "false",
        "key_separator": " | ",
        "line_separator": ";",
        "headers_separator": "+",
        "null_literal": "-",
    }
    assert shown(RECORD, **chosen) == b"h:1+i:- | k;"
    assert shown(BARE, **chosen) == b"NO_HEADERS | -;"


def test_numbers_are_decoded() -> None:
    record = RECORD._replace(key=(5).to_bytes(8, "big"), value=(-2).to_bytes(4, "big", signed=True))
    package = "org.apache.kafka.common.serialization."
    properties = {
        "print_key": "true",
        "key_deserializer": f"{package}LongDeserializer",
        "value_deserializer": f"{package}IntegerDeserializer",
    }
    assert shown(record, **properties) == b"5\t-2\n"
    with pytest.raises(BadCommandLine, match="Size of data received by LongDeserializer is not 8"):
        shown(RECORD, **properties)
    with pytest.raises(NotCovered, match="Java classes cannot be run"):
        default_layout({"value.deserializer": "com.example.Mine"})
    with pytest.raises(BadCommandLine, match="not one of"):
        default_layout({"print.kye": "true"})


def test_a_line_is_read_by_the_properties_of_kafkas_reader() -> None:
    assert LineReader("t").record(b"a\tb", 1).value == b"a\tb"
    reader = LineReader("t", b":", b"\t", b";", b"=", b"NULL")
    record = reader.record(b"h=1;i=NULL\tk:v:w", 1)
    assert record.headers == (("h", b"1"), ("i", None))
    assert (record.key, record.value) == (b"k", b"v:w")
    record = reader.record(b"NULL\tNULL:NULL", 1)
    assert (record.headers, record.key, record.value) == ((), None, None)
    for line, lacking in (
        (b"k:v", "headers delimiter"),
        (b"h=1\tv", "key separator"),
        (b"h\tk:v", "header key separator"),
    ):
        with pytest.raises(NoKey, match=f"No {lacking} found on line number 7: '"):
            reader.record(line, 7)
    lenient = reader._replace(ignores_errors=True)
    record = lenient.record(b"v", 1)
    assert (record.headers, record.key, record.value) == ((), None, b"v")


def test_groups_are_listed_in_columns_that_grow_with_the_names() -> None:
    found = [GroupListing("g", "consumer", "Empty", ""), GroupListing("h" * 20, "", "Stable", "x")]
    assert list_text(found, with_type=False, with_state=False) == f"g\n{'h' * 20}\n"
    assert list_text(found, with_type=True, with_state=True).splitlines() == [
        f"{'GROUP':<30} {'TYPE':<20} {'STATE':<20}",
        f"{'g':<30} {'Classic':<20} {'Empty':<20}",
        f"{'h' * 20:<30} {'X':<20} {'Stable':<20}",
    ]
    assert list_text(found[:1], with_type=False, with_state=True).startswith(f"{'GROUP':<25} STATE")


def group(*members: MemberDescription) -> GroupDescription:
    at = BrokerAddress(0, "localhost", 9092)
    return GroupDescription("g", "Stable", "consumer", "range", at, members, ())


def test_members_are_shown_with_the_numbers_of_their_partitions() -> None:
    names = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0))
    busy = MemberDescription("m1", None, "c", "/127.0.0.1", ("a", "b"), names)
    idle = MemberDescription("m2", "static", "c", "/127.0.0.1", ("a",), ())
    lines = members_text(group(busy, idle), verbose=True).splitlines()
    assert lines[0] == ""
    assert lines[1].split() == [
        *("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST"),
        *("CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"),
    ]
    assert lines[2].endswith(f" {'3':<15} (0,1), (0)")
    assert lines[3].split() == ["g", "m2", "static", "/127.0.0.1", "c", "0", "-"]
    assert members_text(group(), verbose=False) == (
        "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     \n"
    )


def test_a_partition_without_an_offset_has_no_lag_in_kafkas_tables() -> None:
    member = MemberDescription("m", None, "c", "/h", ("t",), (TopicPartition("t", 0),))
    rows = [
        GroupRow(TopicPartition("t", 0), None, 5, 5, member),
        GroupRow(TopicPartition("t", 1), None, 5, 5, None),
        GroupRow(TopicPartition("t", 2), 1, 5, 4, None),
    ]
    left = without_unread(DescribedGroup(group(member), {}, rows)).rows
    assert [(row.partition, row.lag) for row in left] == [
        (TopicPartition("t", 0), None),
        (TopicPartition("t", 2), 4),
    ]


def test_deleted_offsets_are_listed_a_line_each() -> None:
    outcomes = {TopicPartition("t", 0): None, TopicPartition("t", 1): GroupIdNotFound()}
    assert deleted_offsets_text(outcomes).splitlines()[2:] == [
        f"{'t':<30} {'0':<15} {'Successful':<15}",
        f"{'t':<30} {'1':<15} Error: :org.apache.kafka.common.errors.GroupIdNotFoundException: "
        "The group id does not exist.",
    ]


def test_errors_have_the_names_of_kafkas_exceptions() -> None:
    package = "org.apache.kafka.common.errors"
    error = TopicAlreadyExists("topic 'test': Topic 'test' already exists.")
    assert java_text(error) == f"{package}.TopicExistsException: Topic 'test' already exists."
    assert java_text(InvalidTopic("bad")) == f"{package}.InvalidTopicException: bad"
    assert java_text(GroupIdNotFound()).endswith("Exception: The group id does not exist.")


def test_api_versions_tell_what_can_be_used() -> None:
    broker = BrokerDescription(3, "host", 9092, "r1")
    text = broker_text(broker, {0: (0, 99), 17: (0, 1), 45: (0, 0), 999: (0, 2), 18: (50, 60)})
    assert text.startswith("host:9092 (id: 3 rack: r1) -> (\n\tProduce(0): 0 to 99 [usable: 11],\n")
    assert "\tFetch(1): UNSUPPORTED,\n" in text
    assert "\tSaslHandshake(17): 0 to 1 [usable: 1],\n" in text
    assert "\tApiVersions(18): 50 to 60 [unusable: node too new],\n" in text
    assert "\tAlterPartitionReassignments(45): 0 [usable: 0],\n" in text
    assert text.endswith("\tUNKNOWN(999): 0 to 2\n)\n")
