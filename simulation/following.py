"""The fetchers of a simulated broker: one loop for each leader that it follows.

A fetch asks a leader for every partition that the broker follows there. Each partition's part of
the answer goes to its follower machine, whose steps are carried out here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.replication.follower import (
    Append,
    FetchBounds,
    Fetched,
    FetchFrom,
    Ignore,
    StartAt,
    Truncate,
    Wait,
)
from simulation.disk import Entry
from simulation.network import Connection
from simulation.wire import AskLatest, Bounds, Fetch, FetchAnswer, FetchedPart, Wanted
from simulation.world import Promise

if TYPE_CHECKING:
    from simulation.hosted import Hosted
    from simulation.sim_broker import SimBroker

_MAX_WAIT_MS = 400
_TIMEOUT_MS = 1500
_BACKOFF_MS = 60


class Fetchers:
    """All fetchers of this broker."""

    __slots__ = ("_broker", "_sleeping")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self._sleeping: dict[int, Promise[None]] = {}  # by leader: loops that have started

    def follow(self, leader: int) -> None:
        """Start or wake the loop that fetches from this leader."""
        promise = self._sleeping.get(leader)
        if promise is not None:
            promise.resolve(None)
        else:
            self._sleeping[leader] = Promise()
            self._broker.cluster.world.start(self._broker.life, self._loop(leader))

    async def _loop(self, leader: int) -> None:
        broker = self._broker
        world, life = broker.cluster.world, broker.life
        connection = broker.cluster.network.connect(broker.broker_id, life, leader)
        while True:
            followed = [each for each in broker.hosted.values() if each.leader == leader]
            ready = [each for each in followed if each.retry_at_ms <= world.now_ms]
            if not followed:
                self._sleeping[leader] = Promise()
                await self._sleeping[leader]
                continue
            if not ready:
                await world.sleep(life, _BACKOFF_MS)
                continue
            wanted = tuple(
                Wanted(each.name, each.log.topic_id, each.follower.fetch_from()) for each in ready
            )
            request = Fetch(broker.broker_id, broker.epoch, wanted, _MAX_WAIT_MS)
            answer: FetchAnswer | None = await connection.call(request, _TIMEOUT_MS)
            if answer is None:
                await world.sleep(life, _BACKOFF_MS)
                continue
            for hosted, asked, part in zip(ready, wanted, answer.parts, strict=True):
                if broker.hosted.get(hosted.name) is hosted:
                    await self._answered(connection, hosted, asked.sent, part)

    async def _answered(
        self, connection: Connection, hosted: Hosted, sent: FetchFrom, part: FetchedPart
    ) -> None:
        step = hosted.follower.on_answer(sent, part.got)
        if isinstance(step, Append):
            self._append(hosted, part.got, part.entries)
        elif isinstance(step, FetchBounds):
            question = AskLatest(
                hosted.name, hosted.log.topic_id, sent.leader_epoch, is_follower=True
            )
            bounds: Bounds | None = await connection.call(question, _TIMEOUT_MS)
            is_same = (
                self._broker.hosted.get(hosted.name) is hosted
                and not hosted.partition.is_leader
                and hosted.partition.leader_epoch == sent.leader_epoch
            )
            if bounds is None or bounds.error_code or not is_same:
                hosted.retry_at_ms = self._broker.now_ms + _BACKOFF_MS
            else:
                self._carry_out(hosted, hosted.follower.on_bounds(bounds.earliest, bounds.latest))
        else:
            self._carry_out(hosted, step)

    def _carry_out(self, hosted: Hosted, step: Truncate | StartAt | Wait | Ignore | object) -> None:
        if isinstance(step, Truncate):
            gone = hosted.log.truncate(step.offset)
            _moved_back(hosted)
            self._broker.cluster.checks.truncated(hosted, step.offset, gone)
        elif isinstance(step, StartAt):
            gone = hosted.log.truncate(hosted.log.base)
            hosted.log.start_at(step.offset)
            _moved_back(hosted)
            hosted.partition.on_log_start_moved(step.offset)
            self._broker.cluster.checks.started_at(hosted, step.offset)
        elif isinstance(step, Wait):
            hosted.retry_at_ms = self._broker.now_ms + step.ms

    def _append(self, hosted: Hosted, got: Fetched, entries: tuple[Entry, ...]) -> None:
        log, checks = hosted.log, self._broker.cluster.checks
        if entries and hosted.broker.disk.is_full:
            hosted.broker.fail_disk("there is no space left on it")
            return
        if entries:
            log.append_entries(entries)
            checks.appended(hosted, len(entries))
        hosted.handle(list(hosted.follower.on_appended(got)))
        if got.log_start_offset > log.log_start_offset:
            log.raise_start(min(got.log_start_offset, log.log_end_offset))
            hosted.partition.on_log_start_moved(log.log_start_offset)


def _moved_back(hosted: Hosted) -> None:
    """Lower the checkpoint: after the next crash, what replaces the removed records would pass
    for committed."""
    checkpointed = hosted.broker.disk.high_watermarks
    end_offset = hosted.log.log_end_offset
    checkpointed[hosted.name] = min(checkpointed.get(hosted.name, 0), end_offset)
