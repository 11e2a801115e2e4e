"""kcat: an old librdkafka (2.0.2 in Debian 12) behind a command line.

Text only: keys, values and headers must be UTF-8 without line ends or tabs, and a timestamp cannot
be given. It cannot tell a null from an empty string when it writes; `-Z` makes every empty one a
null.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from typing import Any

from tests.kit import foreign
from tests.kit.clients.clients import PROMISES, TIMEOUT_SECONDS, PartitionSeen, Promise, Seen, Sent

name = "kcat"
promises = PROMISES


def produce(servers: str, topic: str, records: list[Sent], *, codec: str, promise: Promise) -> None:
    """One run for each partition and set of headers: both are options, not input."""
    for (partition, headers), group in itertools.groupby(
        sorted(records, key=lambda record: record.partition),
        key=lambda record: (record.partition, record.headers),
    ):
        lines = b"".join(b"%b\t%b\n" % (record.key or b"", record.value or b"") for record in group)
        options = ["-P", "-t", topic, "-p", str(partition), "-K", "\t", "-Z", "-z", codec]
        options += ["-X", f"acks={promise.acks}", "-X", "linger.ms=20"]
        options += ["-X", f"enable.idempotence={str(promise.is_idempotent).lower()}"]
        for header, value in headers:
            options += ["-H", f"{header}={value.decode()}"]
        run(servers, *options, stdin=lines)


def consume(servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
    """All partitions at once; `-e` ends it when each has been read to its end."""
    output = run(servers, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J", "-u")
    seen = [_seen(json.loads(line)) for line in output.splitlines()]
    assert {record.partition for record in seen} <= set(range(partitions))
    return sorted(seen[:count], key=lambda record: record.partition)


def list_topics(servers: str) -> set[str]:
    return {topic["topic"] for topic in json.loads(run(servers, "-L", "-J"))["topics"]}


def describe_topic(servers: str, topic: str) -> list[PartitionSeen]:
    [described] = json.loads(run(servers, "-L", "-J", "-t", topic))["topics"]
    return sorted(
        PartitionSeen(
            one["partition"],
            one["leader"],
            tuple(replica["id"] for replica in one["replicas"]),
            tuple(replica["id"] for replica in one["isrs"]),
        )
        for one in described["partitions"]
    )


def run(servers: str, *options: str, stdin: bytes = b"") -> str:
    """kcat's standard output; fails with what it said when it fails."""
    command = [str(foreign.require_kcat()), "-b", servers, *options]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def _seen(line: dict[str, Any]) -> Seen:
    flat = line.get("headers") or []
    headers = tuple(
        (name, value.encode()) for name, value in zip(flat[::2], flat[1::2], strict=True)
    )
    key, value = _bytes(line["key"]), _bytes(line["payload"])
    return Seen(line["partition"], line["offset"], key, value, headers, line["ts"])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
