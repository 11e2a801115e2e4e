"""A shard's machine is asked again when the time has come that it named."""

from __future__ import annotations

from pathlib import Path

from barnabas.coordinator.decision import Decision
from tests.kit.broker.tallies import NAME, record, run, started
from tests.kit.waiting import until


def test_a_deadline_of_the_machine_is_kept(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            shard = node.shards.shard_of(NAME)
            shard.machine.deadline = node.clock.monotonic_ms() + 60_000
            await node.answer(node.put(NAME, 1))
            assert not shard.machine.expired
            shard.machine.deadline = node.clock.monotonic_ms() + 20
            await node.answer(node.put(NAME, 2))
            await until(lambda: shard.machine.expired == 1)
            # What it decided then is in the log, though no request came with it.
            await until(lambda: shard.replica.high_watermark == 3)

    run(test, tmp_path)


def test_a_refused_append_is_tried_again_at_the_machines_deadline(tmp_path: Path) -> None:
    """PR-7: a transaction of which all markers are written is completed when it can be."""

    async def test(directory: Path) -> None:
        async with started(directory, {"min.insync.replicas": "2"}) as node:
            node.lead(0, 1, others=(5,))
            shard = node.shards.shard_of(NAME)
            shard.machine.deadline = node.clock.monotonic_ms() + 20
            shard.carry_out(Decision((record("x", 1),)))
            assert shard.machine.numbers == {}
            await until(lambda: shard.machine.expired == 1)

    run(test, tmp_path)
