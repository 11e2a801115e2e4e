"""Generates the logs of a fictional shop on three machines; the same seed yields the same bytes.

    auth.log      rsyslog    SSH logins; two addresses guess passwords, and one of them gets in
    orders.log    Log4j      with stack traces; a burst of errors when payments fail
    search.log    Python     its component `search.indexer` falls silent
    storage.log   HDFS       a new message appears an hour before the end
    notes.txt     none       lines without any format

Every longer log contains a line that is not UTF-8, and storage.log a line dated 31 February. Times
start on a fixed Thursday in March, not at the current time.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

_BEGIN: Final = datetime.fromisoformat("2026-03-12T06:00:00")
_SPAN_S: Final = 12 * 3600
_OUTAGE_S: Final = range(5 * 3600, 5 * 3600 + 420)
_SILENT_FROM_S: Final = 8 * 3600
_NEW_FROM_S: Final = 11 * 3600
_GUESSING_S: Final = (range(2 * 3600, 2 * 3600 + 900), range(9 * 3600, 9 * 3600 + 1800))
_SHARES: Final = {"auth.log": 0.12, "orders.log": 0.4, "search.log": 0.24, "storage.log": 0.23}

_NAMES: Final = ("root", "admin", "oracle", "test", "postgres", "pi", "deploy", "git", "ubuntu")
_PEOPLE: Final = ("amalia", "olga", "frieda", "k")
_TRACE: Final = (
    "java.net.SocketTimeoutException: connect timed out",
    "\tat java.base/java.net.Socket.connect(Socket.java:633)",
    "\tat shop.payments.Client.charge(Client.java:88)",
    "\tat shop.orders.Checkout.complete(Checkout.java:41)",
    "Caused by: java.net.ConnectException: Connection refused",
    "\t... 12 more",
)


def write_logs(directory: Path, lines: int, seed: int) -> None:
    """Write files with a total of `lines` lines to a directory, created atomically."""
    temporary = directory.with_name(f"{directory.name}.new")
    if temporary.exists():
        shutil.rmtree(temporary)
    temporary.mkdir()
    for name, content in generate(lines, seed).items():
        (temporary / name).write_bytes(b"".join(line + b"\n" for line in content))
    temporary.replace(directory)


def generate(lines: int, seed: int) -> dict[str, list[bytes]]:
    """Return the lines of each file."""
    source = random.Random(seed)
    writers = {
        "auth.log": _auth,
        "orders.log": _orders,
        "search.log": _search,
        "storage.log": _storage,
    }
    files: dict[str, list[bytes]] = {}
    for name, share in _SHARES.items():
        count = int(lines * share)
        texts = [line.encode() for line in islice(writers[name](source, count), count)]
        if len(texts) > 100:
            texts[len(texts) // 3] += b" \xff\xfe"
        files[name] = texts
    impossible = b"260231 101500 17 INFO storage.Janitor: Deleting block blk_1"
    if files["storage.log"]:
        files["storage.log"][len(files["storage.log"]) // 2] = impossible
    left = lines - sum(map(len, files.values()))
    files["notes.txt"] = [b"a note of the night shift, number %d" % n for n in range(left)]
    return files


def _moments(source: random.Random, count: int, busy: range, times: int) -> Iterator[float]:
    """Yield `count` moments, in seconds since the start. During `busy`, they are `times` times as
    dense.
    """
    dense = times * len(busy)
    for at in sorted(source.random() * (_SPAN_S - len(busy) + dense) for _ in range(count)):
        if at < busy.start:
            yield at
        elif at < busy.start + dense:
            yield busy.start + (at - busy.start) / times
        else:
            yield at - dense + len(busy)


def _at(at_s: float) -> datetime:
    return _BEGIN + timedelta(milliseconds=int(at_s * 1000))


def _auth(source: random.Random, count: int) -> Iterator[str]:
    pid, has_entered = 4000, False
    for at_s in _moments(source, count, _GUESSING_S[0], 30):
        stamp = f"{_at(at_s).isoformat(timespec='milliseconds')}+00:00"
        pid += source.randrange(1, 4)
        head = f"{stamp} gate sshd[{pid}]:"
        guessing = [number for number, during in enumerate(_GUESSING_S) if int(at_s) in during]
        port = source.randrange(30_000, 60_000)
        if not has_entered and at_s >= _GUESSING_S[1].stop:
            has_entered = True
            yield f"{head} Accepted password for git from 203.0.113.18 port {port} ssh2"
        elif guessing and source.random() < 0.9:
            address = f"203.0.113.{17 + guessing[0]}"
            name = source.choice(_NAMES)
            unknown = "" if name in ("root", "git") else "invalid user "
            yield f"{head} Failed password for {unknown}{name} from {address} port {port} ssh2"
        elif source.random() < 0.3:
            who, where = source.choice(_PEOPLE), f"192.0.2.{source.randrange(1, 30)}"
            yield f"{head} Accepted publickey for {who} from {where} port {port} ssh2"
        else:
            who = source.choice(_PEOPLE)
            what = source.choice(("opened", "closed"))
            yield f"{head} pam_unix(sshd:session): session {what} for user {who}"


def _orders(source: random.Random, count: int) -> Iterator[str]:
    # During the outage, about every other record has a stack trace.
    for at_s in _moments(source, int(count / 1.35), _OUTAGE_S, 12):
        moment = _at(at_s)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}"
        order = source.randrange(10_000, 99_999)
        thread = f"[worker-{source.randrange(8)}]"
        if int(at_s) in _OUTAGE_S and source.random() < 0.5:
            yield f"{stamp} ERROR {thread} shop.orders.Checkout: Payment of order {order} failed"
            yield from _TRACE
        elif source.random() < 0.02:
            yield f"{stamp} WARN {thread} shop.orders.Stock: Only {order % 9} left of item {order}"
        elif source.random() < 0.5:
            took = source.randrange(3, 900)
            yield f"{stamp} INFO {thread} shop.orders.Checkout: Order {order} placed in {took} ms"
        else:
            user = source.randrange(1, 5000)
            yield f"{stamp} INFO {thread} shop.orders.Basket: User {user} added item {order}"


def _search(source: random.Random, count: int) -> Iterator[str]:
    for at_s in _moments(source, count, range(0), 1):
        moment = _at(at_s)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}"
        number = source.randrange(1, 5000)
        if at_s < _SILENT_FROM_S and source.random() < 0.25:
            yield f"{stamp} INFO search.indexer indexed {number} documents of shard {number % 6}"
        elif source.random() < 0.03:
            yield f"{stamp} WARNING search.query slow query: {number} ms for /find?q={number:x}"
        else:
            yield f"{stamp} INFO search.query answered {number % 40} hits in {number % 90} ms"


def _storage(source: random.Random, count: int) -> Iterator[str]:
    for at_s in _moments(source, count, range(0), 1):
        stamp = f"{_at(at_s):%y%m%d %H%M%S} {source.randrange(10, 99)}"
        block = f"blk_{source.getrandbits(60)}"
        address = f"10.0.0.{source.randrange(2, 9)}:50010"
        kind = source.random()
        if at_s > _NEW_FROM_S and kind < 0.02:
            disk = f"/data/disk{source.randrange(4)}"
            yield f"{stamp} WARN storage.Volume: Remounting {disk} read-only after I/O errors"
        elif kind < 0.4:
            yield f"{stamp} INFO storage.Receiver: Receiving block {block} from {address}"
        elif kind < 0.8:
            yield f"{stamp} INFO storage.Receiver: Received block {block} of size {67_108_864}"
        else:
            yield f"{stamp} INFO storage.Janitor: Deleting block {block}"
