"""Produces one record, and deletes records from the start of partitions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from barnabas.client.admin.admin import TopicDescription
from barnabas.client.arguments import INT32_MAX, INT64_MAX
from barnabas.client.lag.readings import offsets_at
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.client.producer.producer import Producer
from barnabas.console.problem import WebProblem
from barnabas.console.writing.form import Form
from barnabas.console.writing.plan import Access, Action, Change, Plan
from barnabas.console.writing.topic_actions import describe_topic, topic_field
from barnabas.counted import counted
from barnabas.types import TopicPartition

_FORMS: Final = ("text", "hex", "base64", "null")
_MOST_CHARACTERS: Final = 200_000
_MOST_HEADERS: Final = 50
_SHOWN: Final = 300
_DELIVERY_MS: Final = 20_000

Header = tuple[str, bytes | None]


class ProduceRecord(Action):
    """Appends one record to a topic."""

    name = "produce-record"

    def __init__(
        self,
        topic: str,
        partition: int | None,
        content: tuple[bytes | None, bytes | None],
        headers: list[Header],
    ) -> None:
        """`content` contains the key and the value."""
        self._topic = topic
        self._partition = partition
        self._key, self._value = content
        self._headers = headers

    @classmethod
    def parse(cls, form: Form) -> ProduceRecord:
        """Return the action that a form describes."""
        topic = topic_field(form)
        partition = form.optional_whole("partition", least=0, most=INT32_MAX)
        content = _content(form.form("key"), "key"), _content(form.form("value"), "value")
        headers = [
            (each.text("name"), _content(each.form("value"), "header"))
            for each in form.forms("headers")
        ]
        if len(headers) > _MOST_HEADERS:
            raise WebProblem(400, f"headers: at most {_MOST_HEADERS}, not {len(headers)}")
        return cls(topic, partition, content, headers)

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return f"Write and Describe on the topic {self._topic!r}"

    async def plan(self, access: Access) -> Plan:
        """Return the record, as it will be stored."""
        topic = await describe_topic(access, self._topic)
        if self._partition is not None:
            check_partition(topic, self._partition)
        chosen = "chosen by the key" if self._key is not None else "chosen by the producer"
        changes = [
            Change("partition", None, chosen if self._partition is None else str(self._partition)),
            Change("key", None, _text(self._key)),
            Change("value", None, _text(self._value)),
        ]
        # A record may have several headers with the same name.
        changes += [
            Change(f"header {number}, {name}", None, _text(value))
            for number, (name, value) in enumerate(self._headers, 1)
        ]
        warnings = []
        if topic.is_internal:
            warnings.append("This is an internal topic: a record from you can damage the cluster.")
        if self._value is None:
            warnings.append("A null value deletes the key if the topic is compacted.")
        return Plan(
            f"produce one record to topic {topic.name}",
            tuple(changes),
            (),
            tuple(warnings),
            {"topic_id": topic.topic_id.hex(), "partitions": len(topic.partitions)},
        )

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Append the record, and wait until all in-sync replicas have it."""
        del plan
        options = {**access.settings, "acks": "all", "delivery_timeout_ms": _DELIVERY_MS}
        producer = Producer(access.servers, **options)
        await producer.start()
        try:
            delivery = await producer.send(
                self._topic,
                self._value,
                key=self._key,
                partition=self._partition,
                headers=self._headers,
            )
            stored = await delivery
        finally:
            await producer.close(_DELIVERY_MS)
        return [f"The record is at offset {stored.offset} of partition {stored.partition}."]


class DeleteRecords(Action):
    """Deletes all records of a topic's partitions, or those before an offset."""

    name = "delete-records"

    def __init__(
        self,
        topic: str,
        partition: int | None,
        offsets: Mapping[int, int] | None,
        before: int | None,
    ) -> None:
        """If `partition` is None, records are deleted in all partitions. `before` is the first
        offset to keep, or None to delete up to the end.

        `offsets` are the offsets of a plan, by partition. If they are given, only these are used.
        """
        self._topic = topic
        self._partition = partition
        self._offsets = offsets
        self._before = before

    @classmethod
    def parse(cls, form: Form) -> DeleteRecords:
        """Return the action that a form describes. The topic's name has to be given twice."""
        topic = topic_field(form)
        if form.text("confirm") != topic:
            raise WebProblem(400, f"confirm: type the name of the topic, {topic!r}")
        partition = form.optional_whole("partition", least=0, most=INT32_MAX)
        return cls(topic, partition, None, form.optional_whole("before", least=0, most=INT64_MAX))

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return f"Delete and Describe on the topic {self._topic!r}"

    async def plan(self, access: Access) -> Plan:
        """Return the start offset of each log, before and after the deletion."""
        topic = await describe_topic(access, self._topic)
        numbers = [each.partition for each in topic.partitions]
        if self._partition is not None:
            check_partition(topic, self._partition)
            numbers = [self._partition]
        names = [TopicPartition(topic.name, number) for number in numbers]
        starts = await offsets_at(access.admin, names, EARLIEST)
        ends = await offsets_at(access.admin, names, LATEST)
        changes = []
        total = 0
        for name in names:
            start, end = starts[name], ends[name]
            kept = self._first_kept(name, end)
            if kept is None or kept <= start:
                continue
            total += kept - start
            changes.append(Change(str(name), f"starts at {start}", f"starts at {kept}"))
        sentence = f"At most {counted(total, 'record')} will be deleted."
        return Plan(
            f"delete records of topic {topic.name}",
            tuple(changes),
            (sentence,) if changes else ("No record is before this offset.",),
            ("Deleted records cannot be brought back.",),
            {"topic_id": topic.topic_id.hex()},
        )

    def as_planned(self, plan: Plan) -> DeleteRecords:
        """Return the deletion up to the offsets in the plan, even if the logs have grown since."""
        return DeleteRecords(self._topic, self._partition, _kept(plan), self._before)

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Delete the records."""
        offsets = {TopicPartition(self._topic, each): to for each, to in _kept(plan).items()}
        starts = await access.admin.delete_records(offsets)
        return [f"{name} starts at {start}." for name, start in sorted(starts.items())]

    def _first_kept(self, name: TopicPartition, end: int) -> int | None:
        """Return the first offset to keep, or None if no records of the partition are deleted."""
        if self._offsets is not None:
            return self._offsets.get(name.partition)
        # A log has no record after its end, and the brokers would refuse such an offset.
        return end if self._before is None else min(self._before, end)


def _kept(plan: Plan) -> dict[int, int]:
    """Return the first offset to keep in each partition of a plan."""
    return {
        int(change.what.rpartition("-")[2]): int((change.after or "").rpartition(" ")[2])
        for change in plan.changes
    }


def check_partition(topic: TopicDescription, partition: int) -> None:
    """Raise a `WebProblem` if the topic does not have this partition."""
    if partition >= len(topic.partitions):
        raise WebProblem(
            400,
            f"partition: the topic {topic.name!r} has the partitions 0 to "
            f"{len(topic.partitions) - 1}",
        )


def _content(form: Form, what: str) -> bytes | None:
    """Decode the bytes that a form contains as text, hexadecimal digits or base64."""
    kind = form.choice("form", _FORMS)
    given = form.text("text", "", _MOST_CHARACTERS)
    form.end()
    if kind == "null":
        if given:
            raise WebProblem(400, f"{what}: null has no text")
        return None
    if kind == "text":
        return given.encode("utf-8")
    packed = "".join(given.split())
    try:
        return bytes.fromhex(packed) if kind == "hex" else base64.b64decode(packed, validate=True)
    except (ValueError, binascii.Error) as error:
        raise WebProblem(400, f"{what}: this is not {kind}: {error}") from None


def _text(data: bytes | None) -> str:
    """Return a text by which a person can recognise the bytes."""
    if data is None:
        return "null"
    size = counted(len(data), "byte")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        shown = data[:_SHOWN].hex()
        return f"{shown}{'…' if len(data) > _SHOWN else ''} ({size}, hex)"
    return f"{text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''} ({size})"
