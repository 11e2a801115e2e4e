"""ZS-1: our ZooKeeper server and a real one give the same responses to the same requests.

Two sessions on each server send the same generated requests. Results, error codes, stats and the
events of watches are equal, in the same order; times are not compared, and the numbers of
transactions by their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.zookeeper.access import digest_identity
from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.jute import (
    Acl,
    buffer_bytes,
    int_bytes,
    long_bytes,
    string_bytes,
    strings_bytes,
)
from barnabas.zookeeper.tree import MOST_TTL_MS
from tests.kit.clients.zookeeper_wire import (
    WireSession,
    create_body,
    create_ttl_body,
    multi_body,
    path_body,
    set_acl_body,
    set_data_body,
    watch_body,
    with_ranks,
)
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

TICK_MS = 3000
HOUR_MS = 3_600_000
TYPES = "extendedTypesEnabled=true"
NAMES = ("one", "two")

_IDENTITY = digest_identity(b"user:secret")
assert _IDENTITY is not None
ACLS = (
    [Acl(31, "world", "anyone")],
    [Acl(31, "world", "anyone")],
    [Acl(31, "world", "anyone")],
    [Acl(1, "world", "anyone")],
    [Acl(31, *_IDENTITY)],
    [Acl(1, "world", "anyone"), Acl(30, *_IDENTITY)],
    [Acl(31, "auth", "")],
    [Acl(31, "ip", "127.0.0.1")],
    [Acl(31, "ip", "127.0.0.0/8"), Acl(31, "ip", "127.0.0.0/8")],
    [Acl(31, "ip", "10.0.0.1")],
    [],
    [Acl(31, "world", "nobody")],
    [Acl(31, "digest", "no-colon")],
    [Acl(31, "other", "x")],
)

# Each is put behind the root of the example.
good_paths = st.sampled_from(["", "/a", "/b", "/a/x", "/a/y", "/a/x/z"])
paths = (
    good_paths
    | good_paths
    | good_paths
    | st.sampled_from(
        ["/", "/a/", "/a//x", "/a/../b", "/a/.", "/a\x01", "/a\u00e9", "/a\ue000", "/s-", "/a/s-"]
    )
)
versions = st.sampled_from([-1, -1, -1, 0, 1, 2])
data = st.sampled_from([None, b"", b"x", b"longer"])
acls = st.sampled_from(ACLS)
flags = st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 7, -1])
ttl_flags = st.sampled_from([5, 5, 6, 0, 4, 7])
# No node lives so short that it could end during an example.
ttls = st.sampled_from([HOUR_MS, HOUR_MS, MOST_TTL_MS, MOST_TTL_MS + 1, 0, -1])
booleans = st.booleans()

creations = st.tuples(
    st.sampled_from([Op.CREATE, Op.CREATE2]),
    st.just("create"),
    paths,
    data,
    acls,
    flags,
)
# Clients send this type with this flag only.
creations |= st.tuples(
    st.just(Op.CREATE_CONTAINER), st.just("create"), paths, data, acls, st.just(4)
)
creations |= st.tuples(
    st.just(Op.CREATE_TTL), st.just("create_ttl"), paths, data, acls, ttl_flags, ttls
)
deletions = st.tuples(st.just(Op.DELETE), st.just("version"), paths, versions)
sets = st.tuples(st.just(Op.SET_DATA), st.just("set"), paths, data, versions)
checks = st.tuples(st.just(Op.CHECK), st.just("version"), paths, versions)
reads = st.tuples(
    st.sampled_from([Op.GET_DATA, Op.EXISTS, Op.GET_CHILDREN, Op.GET_CHILDREN2]),
    st.just("watch"),
    paths,
    booleans,
)
plain_reads = st.tuples(
    st.sampled_from([Op.GET_DATA, Op.GET_CHILDREN]), st.just("watch"), paths, st.just(False)
)
others = st.tuples(
    st.sampled_from([Op.GET_ACL, Op.SYNC, Op.GET_EPHEMERALS, Op.GET_ALL_CHILDREN_NUMBER]),
    st.just("path"),
    good_paths,
)
acl_changes = st.tuples(st.just(Op.SET_ACL), st.just("acl"), paths, acls, versions)
persistent = st.tuples(
    st.just(Op.ADD_WATCH), st.just("version"), good_paths, st.sampled_from([0, 1])
)
# Not checkWatches, which finds the watches of other sessions as well in ZooKeeper 3.8.0.
removals = st.tuples(
    st.just(Op.REMOVE_WATCHES),
    st.just("version"),
    good_paths,
    st.sampled_from([1, 2, 3]),
)
auths = st.tuples(st.just(Op.AUTH), st.just("auth"))
multis = st.tuples(
    st.just(Op.MULTI), st.just("multi"), st.lists(creations | deletions | sets | checks, max_size=4)
)
multi_reads = st.tuples(st.just(Op.MULTI_READ), st.just("multi"), st.lists(plain_reads, max_size=3))
set_watches = st.tuples(
    st.sampled_from([Op.SET_WATCHES, Op.SET_WATCHES2]),
    st.just("watches"),
    st.lists(st.lists(good_paths, max_size=2, unique=True), min_size=3, max_size=3),
)
requests = (
    creations | creations | creations | deletions | sets | sets | reads | reads | others
    | acl_changes | persistent | removals | auths | multis | multis | multi_reads | set_watches
)  # fmt: skip
programs = st.lists(st.tuples(st.sampled_from(NAMES), requests), min_size=1, max_size=25)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """Of a real server, and of ours."""
    real = ZooKeeperProcess(tmp_path_factory.mktemp("real"), tick_ms=TICK_MS, config=TYPES)
    own = OwnZooKeeperProcess(tmp_path_factory.mktemp("own"), tick_ms=TICK_MS, config=TYPES)
    try:
        real.start()
        own.start()
        yield real.port, own.port
    finally:
        for each in (real, own):
            if each.process is not None:
                each.kill()


def body_of(root: str, request: tuple) -> tuple[int, bytes]:  # type: ignore[type-arg]
    op, shape, *rest = request
    if shape == "multi":
        return op, multi_body([body_of(root, each) for each in rest[0]])
    if shape == "auth":
        return op, int_bytes(0) + string_bytes("digest") + buffer_bytes(b"user:secret")
    if shape == "watches":
        lists = [strings_bytes(root + each for each in paths) for paths in rest[0]]
        lists += [strings_bytes([])] * 2 * (op == Op.SET_WATCHES2)
        return op, long_bytes(1 << 60) + b"".join(lists)
    path = root + rest[0]
    bodies = {
        "create": create_body,
        "create_ttl": create_ttl_body,
        "version": path_body,
        "path": path_body,
        "set": set_data_body,
        "watch": watch_body,
        "acl": set_acl_body,
    }
    return op, bodies[shape](path, *rest[1:])  # type: ignore[operator]


def transcript(port: int, root: str, program: list) -> list[object]:  # type: ignore[type-arg]
    names: dict[int, str] = {}
    sessions = {name: WireSession(port, names, name) for name in NAMES}
    found: list[object] = []
    try:
        create = create_body(root, b"", [Acl(31, "world", "anyone")], 0)
        sessions["one"].ask(Op.CREATE, create)
        for name, request in program:
            found.append((name, sessions[name].ask(*body_of(root, request))))
            for other, session in sessions.items():
                if other != name:
                    found.append((other, session.ask(Op.SYNC, path_body(root))))
        # Closed sessions take their ephemeral nodes with them, in view of the other's watches.
        sessions.pop("two").close()
        found.append(("one", sessions["one"].ask(Op.GET_CHILDREN2, watch_body(root, False))))
    finally:
        for session in sessions.values():
            session.close()
    return found


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs)
def test_zs_1_generated_requests_get_the_responses_of_a_real_server(
    ports: tuple[int, int],
    program: list,  # type: ignore[type-arg]
) -> None:
    root = f"/case-{next(_numbers)}"
    real, own = (with_ranks(transcript(port, root, program)) for port in ports)
    assert isinstance(real, list) and isinstance(own, list)
    differences = [pair for pair in zip(own, real, strict=True) if pair[0] != pair[1]]
    assert differences == [], "ours, and a real server's"


_numbers = iter(range(1 << 30))
