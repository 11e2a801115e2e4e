"""Generates what clients of a ZooKeeper server do: a few nodes, which all of them change."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from simulation.keeper import records
from simulation.keeper.client import Client
from simulation.keeper.records import Request

ROOT = "/t"
_NODES = tuple(f"{ROOT}/{name}" for name in "abc")
_CHILDREN = tuple(f"{node}/{name}" for node in _NODES[:2] for name in "xy")
_MOST_OPEN = 8
_KINDS = (
    *(records.CREATE,) * 4,
    *(records.SET,) * 4,
    *(records.DELETE,) * 2,
    *(records.GET,) * 4,
    *(records.EXISTS,) * 2,
    *(records.CHILDREN,) * 2,
)


def request(random: Random, value: bytes) -> Request:
    """Draw an operation. `value` is unique, so that a read shows which write it has seen."""
    kind = random.choice(_KINDS)
    path = random.choice((*_NODES, *_CHILDREN))
    if kind == records.CREATE:
        is_sequential = random.random() < 0.2
        if is_sequential:
            path = f"{random.choice((ROOT, *_NODES))}/s-"
        # What is sequential is never deleted, so it must not stay.
        is_ephemeral = is_sequential or random.random() < 0.4
        return Request(kind, path, value, -1, is_ephemeral, is_sequential)
    if kind == records.SET:
        version = random.choice((-1, -1, 0, 1, 2))
        return Request(kind, path, value, version)
    if kind == records.CHILDREN:
        path = random.choice((ROOT, *_NODES))
    watch = kind in records.READS and random.random() < 0.5
    return Request(kind, path, watch=watch)


async def work(
    client: Client, name: str, is_over: Callable[[int], bool], *, rest_s: float = 0.02
) -> None:
    """Send operations, several at a time, and close the session now and then.

    `is_over` is called with the number of operations before each of them.
    """
    random = client.random
    await client.connect()
    client.ask(Request(records.CREATE, ROOT))
    number = 0
    while not is_over(number):
        number += 1
        await client.connect()
        if random.random() < 0.01:
            client.ask(Request(records.CLOSE))
            await client.settle()
            continue
        client.ask(request(random, f"{name}-{number}".encode()))
        await client.settle(random.choice((0, 1, _MOST_OPEN)))
        if random.random() < 0.1:
            await client.settle()
            await client.rest(rest_s * random.random())
    await client.settle()


async def stay(client: Client, is_over: Callable[[], bool]) -> None:
    """Keep the session until all is over, and learn whether it was kept."""
    while not is_over():
        await client.rest(client.timeout_s / 4)
    await client.connect()
    client.ask(Request(records.EXISTS, ROOT))
    await client.settle()


async def look(client: Client) -> None:
    """Read every node, as a last witness."""
    await client.connect()
    for path in (ROOT, *_NODES, *_CHILDREN):
        client.ask(Request(records.GET, path))
        client.ask(Request(records.CHILDREN, path))
    await client.settle()
