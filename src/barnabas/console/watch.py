"""Polls a cluster while somebody is watching, and keeps the latest results.

Several loops run concurrently, so that a slow loop does not delay the others: one for the brokers,
topics and end offsets, one for the events, one for the groups and, less often, loops for the log
directories, the start offsets and the transactions. A page is always served from the latest
successful polls, together with the reason for any later failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from barnabas.client.admin.admin import Admin, TopicDescription
from barnabas.client.errors import AUTHENTICATION_ERRORS, Unreachable
from barnabas.client.lag.looker import LagLooker
from barnabas.client.lag.verdict import PATIENCE_MS
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.clock import Clock, SystemClock
from barnabas.console.client_look import ClientLook
from barnabas.console.event_book import EventBook
from barnabas.console.findings import Known
from barnabas.console.log_ends import LogEnds
from barnabas.console.problem import FAILURES, reason_of
from barnabas.console.race import race
from barnabas.console.rates import Growth, SeriesBook
from barnabas.console.snapshot import (
    NO_DISKS,
    NO_GROUPS,
    NO_TRANSACTIONS,
    ClusterLook,
    GroupLook,
    TransactionLook,
    disk_look,
)
from barnabas.console.transactions import OPEN
from barnabas.console.turns import latest, next_turn
from barnabas.console.viewers import News, Viewers
from barnabas.errors import ClusterAuthorizationFailed, GroupAuthorizationFailed, KafkaError
from barnabas.types import TopicPartition

_PATIENCE: Final[Mapping[str, Any]] = {
    "client_id": "barnabas-console",
    "request_timeout_ms": 3_000,
    "default_api_timeout_ms": 5_000,
}
"""With these settings, a poll soon fails with an error if a broker hangs. The user's own settings
override them.
"""
PAUSE_S: Final = 2.0
"""The time between polls. The page requests data at the same interval."""
_CLIENT_PAUSE_S: Final = 4.0
_SLOW_PAUSE_S: Final = 10.0
_START_S: Final = 15.0
_LONGEST_S: Final = 60.0
"""A poll that takes longer fails. The first poll of many groups is slow because it needs the
metadata of all their topics."""
_DENIED_MS: Final = 60_000
"""How long a denied group is not polled. After this time, its ACLs may have changed."""
_MOST_ENDS: Final = 20_000
_MOST_OPEN: Final = 200
_COUNTED_RECORDS: Final = 1_000

TOPIC, GROUP, OPEN_GROUP = "topic:", "group:", "open group:"
"""The prefixes of the names in `Viewers`: groups in lists, and groups whose own page is open."""
CLIENTS: Final = "clients"
"""The name recorded in `Viewers` while somebody is viewing the clients."""


class ClusterWatch:
    """Watches one cluster. Call `start` and `close`, and run `run` in a task."""

    def __init__(self, servers: str, options: Mapping[str, Any]) -> None:
        self.settings = {**_PATIENCE, **options}
        self.servers = servers
        self.admin = Admin(servers, **self.settings)
        self.log_ends = LogEnds(servers, self.settings)
        self.clients = ClientLook(servers, self.settings, self.admin)
        self.viewers = Viewers()
        self.events = EventBook()
        self.events_found = News()
        self.growth = Growth()
        self.group_lags = SeriesBook()
        self.is_refused = False
        """Whether the brokers now reject the user."""
        self._clock: Clock = SystemClock()
        self._look: ClusterLook | None = None
        self._disks = NO_DISKS
        self._groups = NO_GROUPS
        self._denied_groups: dict[str, int] = {}  # the time of each denial, in ms
        self._transactions = NO_TRANSACTIONS

    @property
    def known(self) -> Known:
        """The results of the latest polls."""
        assert self._look is not None, "start has looked at the cluster"
        return Known(self._look, self._disks, self._groups, self._transactions, self.events)

    def now_ms(self) -> int:
        """Return the wall-clock time."""
        return self._clock.wall_ms()

    async def start(self) -> None:
        """Connect, and poll the cluster once. Raises NoBrokersAvailable, a KafkaError or another
        client error.
        """
        await self.admin.start()
        try:
            await self.log_ends.start()
            async with asyncio.timeout(_START_S):
                await self._look_at_cluster()
        except TimeoutError as error:
            await self.close()
            raise Unreachable(f"{self.servers}: {reason_of(error)}") from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect."""
        await self.clients.close()
        await self.log_ends.close()
        await self.admin.close()

    async def run(self) -> None:
        """Poll repeatedly, until cancelled."""
        await race(
            self._repeat(self._look_at_cluster, PAUSE_S, self._cluster_failed),
            self._repeat(self._read_events, PAUSE_S, _is_shown_elsewhere),
            self._watch_groups(),
            self._repeat(self._look_at_disks, _SLOW_PAUSE_S, _is_shown_elsewhere),
            self._repeat(self._look_at_starts, _SLOW_PAUSE_S, _is_shown_elsewhere),
            self._repeat(self._look_at_transactions, _SLOW_PAUSE_S, self._transactions_failed),
            self._watch_clients(),
        )

    async def _repeat(
        self,
        look: Callable[[], Awaitable[None]],
        pause_s: float,
        failed: Callable[[str], None],
    ) -> None:
        while True:
            await self.viewers.wait()
            try:
                async with asyncio.timeout(_LONGEST_S):
                    await look()
            except FAILURES as error:
                self.is_refused |= isinstance(error, AUTHENTICATION_ERRORS)
                failed(reason_of(error))
            await asyncio.sleep(pause_s)

    # ---- brokers, topics and ends ----

    async def _look_at_cluster(self) -> None:
        before = self._look
        cluster = await self.admin.describe_cluster()
        topics = {each.name: each for each in await self.admin.describe_topics()}
        starts = {} if before is None else before.starts
        look = ClusterLook(self.now_ms(), cluster, topics, {}, starts)
        names = self._counted(look)
        ends = await self.log_ends.at(look, names, LATEST)
        if before is None:
            look = look._replace(starts=await self.log_ends.at(look, names, EARLIEST))
        look = look._replace(ends=ends, at_ms=self.now_ms())
        if before is None:
            # Otherwise, the first page would show a cluster without any events.
            await self._read_events_of(look)
        self._look = look
        self.growth.add(look.at_ms, ends)

    async def look_for(self, name: str) -> TopicDescription | None:
        """Return a topic that was perhaps created after the last poll, or None if there is none."""
        try:
            [topic] = await self.admin.describe_topics([name])
        except FAILURES:
            return None
        look = self.known.look
        self._look = look._replace(topics={**look.topics, name: topic})
        return topic

    def _counted(self, look: ClusterLook) -> list[TopicPartition]:
        """Return the partitions whose end offsets are looked up. If there are too many partitions,
        those on view take precedence.
        """
        viewed = [name for name in self.viewers.on_view(TOPIC) if name in look.topics]
        names = dict.fromkeys([*viewed, *look.topics])
        found = [
            TopicPartition(name, each.partition)
            for name in names
            for each in look.topics[name].partitions
        ]
        return found[:_MOST_ENDS]

    def _cluster_failed(self, reason: str) -> None:
        if self._look is not None:
            self._look = self._look._replace(error=reason)

    # ---- events ----

    async def _read_events(self) -> None:
        if self._look is not None:  # otherwise, the first poll reads them
            await self._read_events_of(self._look)

    async def _read_events_of(self, look: ClusterLook) -> None:
        try:
            reports = await self.admin.events(self.events.after)
        except KafkaError:  # the user may not be allowed to see the events
            self.events.silent = sorted(look.live)
            return
        if self.events.add(reports):
            self.events_found.notify()

    # ---- groups ----

    async def _watch_groups(self) -> None:
        while True:
            await self.viewers.wait()
            looker = LagLooker(
                self.servers,
                self.settings,
                isolation_level="read_uncommitted",
                patience_ms=PATIENCE_MS,
                most=_COUNTED_RECORDS,
            )
            try:
                async with looker:
                    await self._repeat(
                        lambda looker=looker: self._look_at_groups(looker),  # type: ignore[misc]
                        PAUSE_S,
                        self._groups_failed,
                    )
            except FAILURES as error:  # the connection failed
                self._groups_failed(reason_of(error))
            await asyncio.sleep(PAUSE_S)

    async def _look_at_groups(self, looker: LagLooker) -> None:
        listings = {each.group_id: each for each in await self.admin.list_groups()}
        # The list is shown before the lags are known.
        self._groups = self._groups._replace(listings=listings)
        before, viewers = self._groups, self.viewers
        opened = reversed(viewers.on_view(OPEN_GROUP))
        now_ms = self.now_ms()
        self._denied_groups = {
            name: at_ms
            for name, at_ms in self._denied_groups.items()
            if name in listings and now_ms - at_ms < _DENIED_MS
        }
        visible = [name for name in listings if name not in self._denied_groups]
        names = next_turn(visible, before.looked_at, opened, viewers.on_view(GROUP))
        try:
            looked = await looker.look(names, before.looked_at)
        except GroupAuthorizationFailed:
            # A user who may Describe the cluster can list all groups, including groups that the
            # user may not Describe. A denied group must not hide the lag of the other groups.
            denied = await self._denied_among(names)
            self._denied_groups |= dict.fromkeys(denied, now_ms)
            names = [name for name in names if name not in denied]
            looked = await looker.look(names, before.looked_at)
        found = {each.group.group_id: each for each in looked}
        now_ms = self.now_ms()
        # A group that was requested but not found has been deleted since it was listed.
        known = {name: at for name, at in before.looked_at.items() if name not in names}
        looked_at = latest(known | dict.fromkeys(found, now_ms), listings)
        lags = {name: found.get(name) or before.lags[name] for name in looked_at}
        self._groups = GroupLook(listings, lags, looked_at, len(self._denied_groups))
        sums = {group_id: float(each.together.records) for group_id, each in found.items()}
        self.group_lags.add(now_ms, sums)

    async def _denied_among(self, names: Iterable[str]) -> set[str]:
        """Return the groups that the user is not allowed to Describe."""
        denied = set()
        for name in names:
            try:
                await self.admin.describe_groups([name])
            except GroupAuthorizationFailed:
                denied.add(name)
        return denied

    def _groups_failed(self, reason: str) -> None:
        self._groups = self._groups._replace(error=f"groups: {reason}")

    # ---- what is polled less often ----

    async def _look_at_disks(self) -> None:
        try:
            self._disks = disk_look(await self.admin.describe_log_dirs())
        except ClusterAuthorizationFailed:
            self._disks = NO_DISKS._replace(is_denied=True)

    async def _look_at_starts(self) -> None:
        look = self.known.look
        starts = await self.log_ends.at(look, self._counted(look), EARLIEST)
        self._look = self.known.look._replace(starts=starts)

    async def _look_at_transactions(self) -> None:
        listings = await self.admin.list_transactions()
        ids = [each.transactional_id for each in listings if each.state in OPEN][:_MOST_OPEN]
        details = await self.admin.describe_transactions(ids) if ids else {}
        self._transactions = TransactionLook(tuple(listings), details, self.now_ms())

    async def _watch_clients(self) -> None:
        while True:
            await self.viewers.wait_for(CLIENTS)
            try:
                async with asyncio.timeout(_LONGEST_S):
                    await self.clients.look(self.known.look, self.now_ms())
            except FAILURES as error:
                self.clients.fail(reason_of(error))
            await asyncio.sleep(_CLIENT_PAUSE_S)

    def _transactions_failed(self, reason: str) -> None:
        self._transactions = self._transactions._replace(error=reason)


def _is_shown_elsewhere(_: str) -> None:
    """Clear the reason for a failure. The sizes remain unchanged, and a missing broker is reported
    as a finding.
    """
