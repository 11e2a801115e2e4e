"""Why the controller changed, by what the metadata store shows (IN-1)."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.controller.election import UNKNOWN, Previous, election_cause
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create, SessionExpired
from barnabas.errors import NotController

ENDED = (
    "the session of broker 2, the previous controller, ended: it stopped, failed or lost its "
    "connection to the metadata store"
)


def cause(previous: Previous, *, epoch: int = 7, has_node: bool = False) -> str:
    async def ask() -> str:
        store = EmbeddedStore()
        known = previous
        if has_node:
            parents = ("/brokers", layout.BROKER_IDS)
            await store.commit([Create(path) for path in parents])
            await store.commit([Create(layout.broker_path(2))])
            node = await store.read(layout.broker_path(2))
            assert node is not None
            if known.broker_epoch == 0:  # stands for the node's own
                known = known._replace(broker_epoch=node.czxid)
        return await election_cause(store, 1, epoch, known)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("previous", "expected"),
    [
        (Previous(), "not known: there was no controller when this broker started, and it "),
        (Previous(2, 5), ENDED),
        (Previous(2), ENDED),
        (Previous(1), "the session of an earlier run of broker 1, the controller, ended"),
        (
            Previous(1, own_end=SessionExpired("/controller", "expired")),
            "the session of broker 1, the previous controller, expired",
        ),
        (
            Previous(1, own_end=NotController("deposed")),
            "broker 1, the previous controller, resigned: deposed",
        ),
    ],
)
def test_in_1_without_a_registration(previous: Previous, expected: str) -> None:
    assert cause(previous).startswith(expected)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (0, "broker 2, the previous controller, is still registered: it resigned, or a tool"),
        (12_345, ENDED),  # it has registered again
        (UNKNOWN, "broker 2 was the previous controller; it is not known why its term ended"),
    ],
)
def test_in_1_with_a_registration(epoch: int, expected: str) -> None:
    assert cause(Previous(2, epoch), has_node=True).startswith(expected)


def test_in_1_the_first_controller() -> None:
    assert cause(Previous(), epoch=1) == "this is the first controller of the cluster"
