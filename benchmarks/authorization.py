"""What rules of access cost: a decision, and the throughput of a broker with 10,000 of them (SE-4).

    python -m benchmarks.authorization [--rules N] [--seconds S] [--json FILE]

Decisions are made in this process, by the authorizer of a broker: `fresh` ones about resources that
were not asked for since the last change of a rule, and those that were kept. Then the same frames
go to a broker with the rules and to one without an authorizer, in turn, each over a connection of
its own; ratios are the median of the rounds. The client is allowed by a prefix among the others,
and no super user. Frames of 100 bytes are the worst case: so many requests share the least work.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.network.client_connection import ClientConnection
from barnabas.broker.security.acl_authorizer import AclAuthorizer
from barnabas.broker.security.authorization import Needs
from barnabas.broker.security.denials import Denials
from barnabas.client import SyncAdmin
from barnabas.clock import SystemClock, SystemRandom
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.config import BrokerConfig
from barnabas.events import EventLog
from barnabas.metrics import Registry
from barnabas.protocol.api import PRODUCE, Api
from barnabas.security.acl import ANONYMOUS, Operation, Principal, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)
from benchmarks.client_work import create_topic
from benchmarks.figures import Figure, parser_of, show
from benchmarks.pipelined import (
    CASES,
    FETCHED_BATCH_BYTES,
    Case,
    Round,
    alternate,
    barnabas,
)
from benchmarks.raw_client import Frames, batch_of, fetch_frame, fill, produce_frame
from tests.kit.processes.broker_process import BrokerProcess, broker_process

COMMAND = "python -m benchmarks.authorization"
RULES = 10_000
SECONDS = 8.0
MOST_LOST = 0.03
_ALLOWED, _DENIED = PermissionType.ALLOW, PermissionType.DENY
_AUTHORIZER = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"
_GLANCES = "barnabas.verify.all.records=false"  # as without an authorizer: rules are measured here
_OPEN = "allow.everyone.if.no.acl.found=true"  # else nobody may create the first rule
_TOPIC = "measured.orders"
_FRESH_US, _AT_ONCE = 5.0, 500
_FETCHED = 64
_TURNS = 4  # who is asked first changes


class Request(NamedTuple):
    """As an authorizer sees it."""

    client: ClientConnection
    api: Api


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rules", type=int, default=RULES, help=f"how many ({RULES})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="per broker and case")
    options = parser.parse_args()
    found = measure(options.rules, options.seconds)
    show(f"{options.rules:,} rules", found, options.json, "without")


def measure(count: int, seconds: float) -> list[Figure]:
    return [*asyncio.run(decisions(count)), *throughput(count, seconds)]


def rules(count: int) -> Iterator[AclBinding]:
    """Of ten kinds, as larger clusters have them; a few hundred users, each with its resources."""
    yield AclBinding(
        Pattern(ResourceType.TOPIC, "measured.", PatternType.PREFIXED),
        AclEntry(str(ANONYMOUS), "*", Operation.ALL, _ALLOWED),
    )
    for number in range(1, count):
        kind, user = number % 10, f"User:user-{number % 300}"
        own = f"team-{number % 40}.topic-{number}"
        operation = Operation.WRITE if number % 20 < 10 else Operation.READ
        pattern = Pattern(ResourceType.TOPIC, own)
        entry = AclEntry(user, "*", operation, _ALLOWED)
        if kind == 5:
            pattern = Pattern(ResourceType.TOPIC, own[: 8 + number % 12], PatternType.PREFIXED)
        elif kind == 6:
            pattern = Pattern(ResourceType.GROUP, own)
        elif kind == 7:
            pattern = Pattern(ResourceType.TRANSACTIONAL_ID, own[:-1], PatternType.PREFIXED)
        elif kind == 8:
            entry = AclEntry(user, f"10.0.{number // 250}.{number % 250}", operation, _DENIED)
        elif kind == 9:
            pattern = Pattern(ResourceType.TOPIC, "*")
            entry = AclEntry(user, f"10.1.{number // 250}.{number % 250}", operation, _ALLOWED)
        yield AclBinding(pattern, entry)


# --- decisions -----------------------------------------------------------------------------------


async def decisions(count: int) -> list[Figure]:
    store = EmbeddedStore()
    config = BrokerConfig({"super.users": "User:root"})
    clock, metrics = SystemClock(), Registry()
    denials = Denials(EventLog(clock.wall_ms, metrics), clock, metrics)
    authorizer = AclAuthorizer(config, store, clock, SystemRandom(), denials)
    await authorizer.acls.open()
    wanted = list(rules(count))
    for at in range(0, len(wanted), _AT_ONCE):
        await authorizer.acls.create(wanted[at : at + _AT_ONCE])
    users = [
        Request(
            ClientConnection("IN", Principal("User", f"user-{number}"), "10.1.2.3", ""), PRODUCE
        )
        for number in range(300)
    ]
    needs = (Needs(Operation.WRITE, ResourceType.TOPIC), Needs(Operation.READ, ResourceType.GROUP))
    asked = [
        (users[number % 300], needs[number % 3 // 2], f"team-{number % 40}.topic-{number}")
        for number in range(count)
    ]
    try:
        fresh = [_per_decision_us(authorizer, asked)]
        kept = [_per_decision_us(authorizer, asked)]
        for number in range(1, 10):
            request = users[0]
            others = [(who, needed, f"{name}.{number}") for who, needed, name in asked]
            fresh.append(_per_decision_us(authorizer, others))
            again = [(request, needs[0], _TOPIC)] * len(asked)
            kept.append(_per_decision_us(authorizer, again))
    finally:
        await authorizer.acls.close()
    return [
        _decision("fresh decision", fresh, _FRESH_US),
        _decision("kept decision", kept, None),
    ]


def _per_decision_us(
    authorizer: AclAuthorizer, asked: Sequence[tuple[Request, Needs, str]]
) -> float:
    """By this process's own time, on which other work of the machine tells less."""
    began = time.process_time()
    for request, needs, name in asked:
        authorizer.allows(request, needs, name)
    return (time.process_time() - began) / len(asked) * 1e6


def _decision(what: str, found: list[float], goal: float | None) -> Figure:
    return Figure(what, "us", statistics.median(found), goal, command=COMMAND)


# --- throughput ----------------------------------------------------------------------------------


def throughput(count: int, seconds: float) -> list[Figure]:
    figures = []
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name, ExitStack() as stack:
        directory = Path(name)
        ruled, plain = (
            stack.enter_context(broker_process(_made(directory / each), *options))
            for each, options in (("ruled", (_AUTHORIZER, _OPEN, _GLANCES)), ("plain", ()))
        )
        with SyncAdmin(ruled.bootstrap_servers) as admin:
            wanted = list(rules(count))
            for at in range(0, len(wanted), _AT_ONCE):
                admin.create_acls(wanted[at : at + _AT_ONCE])
        for case in (CASES["100B"], CASES["16K"], CASES["fetch"]):
            figures += _compared(case, (ruled, plain), seconds)
    return figures


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _compared(case: Case, brokers: Sequence[BrokerProcess], seconds: float) -> list[Figure]:
    topic = f"measured.{case.name}"
    servers = []
    with ExitStack() as stack:
        for broker in brokers:
            create_topic(broker.bootstrap_servers, topic, 1)
            frames = _fetches(case, broker, topic) if case.name == "fetch" else None
            if frames is None:
                frame, _, _ = produce_frame(topic, batch_of(case.batch_bytes)[0])
                frames = Frames([frame] * case.per_block, case.per_block, case.window)
            servers.append(stack.enter_context(barnabas(broker, frames)))
        ruled, plain = servers
        rounds = []
        for number in range(_TURNS):
            if number % 2 == 0:
                rounds += alternate(ruled, plain, seconds / _TURNS)[0]
            else:
                turned, _ = alternate(plain, ruled, seconds / _TURNS)
                rounds += [(own, other) for other, own in turned]
    return _report("fetch, 1 MiB" if case.name == "fetch" else f"produce, {case.name}", rounds)


def _fetches(case: Case, broker: BrokerProcess, topic: str) -> Frames:
    batch, record_count = batch_of(FETCHED_BATCH_BYTES)
    frame, _, _ = produce_frame(topic, batch)
    batches = case.batch_bytes // FETCHED_BATCH_BYTES
    fill(broker.port, Frames([frame], 1, 64), _FETCHED * batches)
    offsets = range(0, _FETCHED * batches * record_count, batches * record_count)
    requests = [fetch_frame(topic, offset, case.batch_bytes) for offset in offsets]
    return Frames(requests, case.per_block, case.window)


def _report(name: str, rounds: list[tuple[Round, Round]]) -> list[Figure]:
    ruled, plain = (list(each) for each in zip(*rounds, strict=True))
    lost = statistics.median(1 - own.per_second / other.per_second for own, other in rounds)
    more = statistics.median(own.cpu_us / other.cpu_us - 1 for own, other in rounds if other.cpu_us)
    return [
        Figure(
            f"{name}, rate",
            "1/s",
            statistics.median(each.per_second for each in ruled),
            other=statistics.median(each.per_second for each in plain),
            command=COMMAND,
        ),
        Figure(
            f"{name}, CPU of the broker",
            "us/request",
            statistics.median(each.cpu_us for each in ruled),
            other=statistics.median(each.cpu_us for each in plain),
            command=COMMAND,
        ),
        Figure(f"{name}, rate lost", "share", max(0.0, lost), MOST_LOST, command=COMMAND),
        Figure(f"{name}, more CPU", "share", max(0.0, more), MOST_LOST, command=COMMAND),
    ]


if __name__ == "__main__":
    main()
