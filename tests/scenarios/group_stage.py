"""Where the dialogues of a group are played: clients by name, one group, a log.

    configure <field>=<number> ...      of `GroupConfig`
    join <client> [v=5] [as=<id>] [instance=<id>] [type=<type>] [protocols=<a>,<b>] [metadata=<x>]
                  [session=<ms>] [rebalance=<ms>]
    sync <client> [gen=<n>] [v=5] [<client>=<topic>-<partition>,...] ...      the leader assigns
    heartbeat <client> [gen=<n>]
    leave <client> ... [v=5]            `instance:<id>` for a member by its instance id
    commit <client> <topic>-<partition>=<offset> ... [gen=<n>]       "stranger" is no member
    fetch
    describe | list | events | delete
    wait <ms>                           the clock goes on, and what is due happens
    refuse                              the next append fails
    crash                               all is forgotten but the log

A client remembers the member id and the generation that it received last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.coordinator.decision import Decision, Now, StateRecord
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.joining import Caller
from barnabas.coordinator.records import GroupMetadataKey
from barnabas.coordinator.settings import GroupConfig
from barnabas.errors import error_for_code
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartitions,
    decode_consumer_protocol,
    encode_consumer_protocol,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
Options = dict[str, str]


class Stage:
    """One group's coordinator, and its clients."""

    def __init__(self) -> None:
        self.config = GroupConfig()
        self.log: list[StateRecord] = []
        self.now_ms = 1_000_000
        self.ids = 0
        self.tickets = 0
        self.refuses = False
        self.member_ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.instances: dict[str, str] = {}
        self.machine = Groups(0, 0, self.config)
        self.machine.on_loaded(self.now)
        self.owed: dict[int, tuple[str, str]] = {}  # ticket -> (client, API)

    @property
    def now(self) -> Now:
        return Now(self.now_ms, self.now_ms)

    # --- clients ---------------------------------------------------------------------------------

    def join(self, names: list[str], options: Options) -> Iterator[str]:
        (client,) = names
        self.ids += 1
        if "instance" in options:
            self.instances[client] = options["instance"]
        member_id = options.get("as", self.member_ids.get(client, ""))
        metadata = options.get("metadata", "").encode()
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            member_id="" if member_id == "new" else member_id,
            group_instance_id=self.instances.get(client),
            protocol_type=options.get("type", "consumer"),
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name in options.get("protocols", "range").split(",")
            ],
        )
        caller = Caller(client, "/10.0.0.1", str(self.ids), int(options.get("v", 5)))
        ticket = self.ask(client, "JoinGroup")
        yield from self.carry_out(self.machine.join(ticket, request, caller, self.now), ticket)

    def sync(self, names: list[str], options: Options) -> Iterator[str]:
        (client,) = names
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(options.pop("gen", self.generations.get(client, -1))),
            member_id=self.member_ids.get(client, ""),
            group_instance_id=self.instances.get(client),
            protocol_name=options.pop("protocol", None),
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=self.member_ids[name], assignment=assignment(partitions)
                )
                for name, partitions in options.items()
            ],
        )
        ticket = self.ask(client, "SyncGroup")
        yield from self.carry_out(self.machine.sync(ticket, request, self.now), ticket)

    def heartbeat(self, names: list[str], options: Options) -> Iterator[str]:
        (client,) = names
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=int(options.get("gen", self.generations.get(client, -1))),
            member_id=self.member_ids.get(client, ""),
            group_instance_id=self.instances.get(client),
        )
        ticket = self.ask(client, "Heartbeat")
        yield from self.carry_out(self.machine.heartbeat(ticket, request, self.now_ms), ticket)

    def leave(self, names: list[str], options: Options) -> Iterator[str]:
        version = int(options.get("v", 5))
        leaving = []
        for name in names:
            kind, _, instance_id = name.partition(":")
            if instance_id:
                leaving.append(MemberIdentity(member_id="", group_instance_id=instance_id))
            else:
                member_id = self.member_ids.get(kind, "")
                instance = self.instances.get(kind)
                leaving.append(MemberIdentity(member_id=member_id, group_instance_id=instance))
        request = LeaveGroupRequest(group_id=GROUP, members=leaving)
        if version < 3:
            request = LeaveGroupRequest(group_id=GROUP, member_id=leaving[0].member_id)
        ticket = self.ask("" if ":" in names[0] else names[0], "LeaveGroup")
        decision = self.machine.leave(ticket, request, version, self.now)
        yield from self.carry_out(decision, ticket)

    def commit(self, names: list[str], options: Options) -> Iterator[str]:
        (client,) = names
        generation = int(options.pop("gen", self.generations.get(client, -1)))
        topics = []
        for place, offset in options.items():
            topic, _, number = place.rpartition("-")
            partition = OffsetCommitPartition(
                partition_index=int(number), committed_offset=int(offset)
            )
            topics.append(OffsetCommitTopic(name=topic, partitions=[partition]))
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=self.member_ids.get(client, ""),
            group_instance_id=self.instances.get(client),
            topics=topics,
        )
        ticket = self.ask(client, "OffsetCommit")
        yield from self.carry_out(self.machine.commit(ticket, request, self.now), ticket)

    # --- tools -----------------------------------------------------------------------------------

    def fetch(self, names: list[str], options: Options) -> Iterator[str]:
        ticket = self.ask("", "OffsetFetch")
        wanted = OffsetFetchGroup(group_id=GROUP, topics=None)
        yield from self.carry_out(self.machine.fetch(ticket, wanted, False, len(self.log)), ticket)

    def describe(self, names: list[str], options: Options) -> Iterator[str]:
        ticket = self.ask("", "DescribeGroups")
        decision = self.machine.describe(ticket, GROUP, with_events=False)
        yield from self.carry_out(decision, ticket)

    def events(self, names: list[str], options: Options) -> Iterator[str]:
        decision = self.machine.describe(0, GROUP, with_events=True)
        for event in decision.replies[0].message.events:
            yield event.story

    def list(self, names: list[str], options: Options) -> Iterator[str]:
        ticket = self.ask("", "ListGroups")
        yield from self.carry_out(self.machine.list_groups(ticket, ListGroupsRequest()), ticket)

    def delete(self, names: list[str], options: Options) -> Iterator[str]:
        ticket = self.ask("", "DeleteGroups")
        yield from self.carry_out(self.machine.delete(ticket, [GROUP], self.now), ticket)

    # --- the world -------------------------------------------------------------------------------

    def configure(self, names: list[str], options: Options) -> Iterator[str]:
        changed = {key: int(value) for key, value in options.items()}
        self.config = self.machine.config = self.config._replace(**changed)
        return iter(())

    def wait(self, names: list[str], options: Options) -> Iterator[str]:
        until_ms = self.now_ms + int(names[0])
        begun_ms = self.now_ms
        for _ in range(1000):
            deadline_ms = self.machine.deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            for decision in self.machine.expire(self.now):
                lines = list(self.carry_out(decision))
                if lines:
                    yield f"after {self.now_ms - begun_ms} ms"
                    yield from lines
        self.now_ms = until_ms

    def refuse(self, names: list[str], options: Options) -> Iterator[str]:
        self.refuses = True
        return iter(())

    def crash(self, names: list[str], options: Options) -> Iterator[str]:
        self.owed.clear()
        self.machine = Groups(0, 1, self.config)
        for offset, record in enumerate(self.log):
            self.machine.apply(record, offset)
        yield from self.carry_out(self.machine.on_loaded(self.now))

    # --- the shell -------------------------------------------------------------------------------

    def ask(self, client: str, api: str) -> int:
        self.tickets += 1
        self.owed[self.tickets] = (client, api)
        return self.tickets

    def carry_out(self, decision: Decision, ticket: int | None = None) -> Iterator[str]:
        is_refused = bool(decision.records) and self.refuses
        for record in decision.records:
            if is_refused:
                yield "log !! refused"
                self.refuses = False
                break
            yield f"log <- {recorded(record)}"
            self.log.append(record)
            self.machine.apply(record, len(self.log) - 1)
        for answered, message, _ in decision.replies:
            client, api = self.owed.pop(answered)
            if is_refused:
                yield f"{client} <- {api} the error of the append".lstrip()
            else:
                yield f"{client} <- {api} {self.shown(client, api, message)}".strip()
        if not is_refused:
            yield from (f"log: {event.text}" for event in decision.events)
        if ticket in self.owed:
            yield f"{self.owed[ticket][0]} waits"

    def shown(self, client: str, api: str, answer: Any) -> str:
        if api == "JoinGroup":
            if answer.member_id:
                self.member_ids[client] = answer.member_id
            if answer.error_code == 0:
                self.generations[client] = answer.generation_id
        return SHOWN[api](answer)


def error(code: int) -> str:
    return error_for_code(code).name if code else "ok"


def assignment(partitions: str) -> bytes:
    """`t-0,t-1` as the leader sends it."""
    topics: dict[str, list[int]] = {}
    for place in filter(None, partitions.split(",")):
        topic, _, number = place.rpartition("-")
        topics.setdefault(topic, []).append(int(number))
    return encode_consumer_protocol(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in topics.items()
            ]
        )
    )


def partitions_of(data: bytes) -> str:
    if not data:
        return "nothing"
    _, assignment = decode_consumer_protocol(ConsumerProtocolAssignment, data)
    places = [
        f"{topic.topic}-{number}"
        for topic in assignment.assigned_partitions
        for number in topic.partitions
    ]
    return ",".join(places) or "nothing"


def recorded(record: StateRecord) -> str:
    key, value = record
    if not isinstance(key, GroupMetadataKey):
        place = f"offset of {key.topic}-{key.partition}"
        return f"{place} deleted" if value is None else f"{place}: {value.offset}"
    if value is None:
        return "group deleted"
    members = " ".join(f"{one.member_id}={partitions_of(one.assignment)}" for one in value.members)
    agreed = f"protocol={value.protocol} leader={value.leader}"
    return f"group generation={value.generation} {agreed} {members or 'no members'}"


def joined(answer: Any) -> str:
    if answer.error_code:
        text = error(answer.error_code)
        return f"{text} member={answer.member_id}" if answer.member_id else text
    text = (
        f"generation={answer.generation_id} protocol={answer.protocol_name} "
        f"leader={answer.leader} member={answer.member_id}"
    )
    if answer.members:
        text += f" members={','.join(one.member_id for one in answer.members)}"
    return text + " skip_assignment" * answer.skip_assignment


def left(answer: Any) -> str:
    return ", ".join(
        [error(answer.error_code)]
        + [
            f"{one.member_id or one.group_instance_id or 'stranger'} {error(one.error_code)}"
            for one in answer.members
        ]
    )


def committed(answer: Any) -> str:
    return ", ".join(
        f"{topic.name}-{one.partition_index} {error(one.error_code)}"
        for topic in answer.topics
        for one in topic.partitions
    )


def fetched(answer: Any) -> str:
    offsets = [
        f"{topic.name}-{one.partition_index}={one.committed_offset}"
        for topic in answer.topics
        for one in topic.partitions
    ]
    return " ".join(offsets) or "nothing"


def described(answer: Any) -> str:
    members = [f"{one.member_id}={partitions_of(one.member_assignment)}" for one in answer.members]
    protocol = [f"protocol={answer.protocol_data}"] if answer.protocol_data else []
    return " ".join([answer.group_state, *protocol, *members])


SHOWN = {
    "JoinGroup": joined,
    "SyncGroup": lambda answer: (
        error(answer.error_code) if answer.error_code else partitions_of(answer.assignment)
    ),
    "Heartbeat": lambda answer: error(answer.error_code),
    "LeaveGroup": left,
    "OffsetCommit": committed,
    "OffsetFetch": fetched,
    "DescribeGroups": described,
    "ListGroups": lambda answer: (
        ", ".join(
            f"{one.group_id} {one.group_state} {one.protocol_type or '-'}" for one in answer.groups
        )
        or "no groups"
    ),
    "DeleteGroups": lambda answer: error(answer.results[0].error_code),
}
