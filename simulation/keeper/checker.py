"""Judges what clients of a ZooKeeper server have seen, whichever server it is.

The number of a transaction says in which order the server has carried out the writes, and which
state a read shows. So each response is compared with the acknowledged writes up to its number. A
write whose response was lost may have been carried out or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from simulation.keeper import records
from simulation.keeper.changes import Changes
from simulation.keeper.records import (
    LOST,
    NO_NODE,
    NODE_EXISTS,
    OK,
    WRITES,
    Answer,
    Event,
    Expired,
    History,
    Record,
    Stat,
)

RULES = ("order", "real time", "writes", "reads", "watches", "ephemerals", "sessions", "expired")
_DELETED, _CHILDREN = 2, 4
_SLACK_S = 0.001  # the precision of the clocks


class _Watch(NamedTuple):
    zxid: int
    """The last state that the client has seen without an event."""
    connection: int
    is_of_absence: bool
    """Whether it waits for the creation of a node."""


class Verdict:
    """What is wrong, and how much each rule has judged."""

    def __init__(self, history: History) -> None:
        self.broken: list[str] = []
        self.judged: Counter[str] = Counter()
        self._history = history
        self._changes = Changes(history)
        for number, every in enumerate(history.by_client):
            self._check_order(number, every)
            self._check_watches(number, every)
            self._check_sessions(number, every)
        self._check_real_time()
        self._check_writes()
        self._check_reads()

    def _wrong(self, rule: str, text: str) -> None:
        self.broken.append(f"{rule}: {text}")

    def _check_order(self, client: int, every: list[Record]) -> None:
        """A client never sees an earlier state than before, over all its connections."""
        newest = 0
        for each in every:
            if isinstance(each, Answer) and each.error != LOST:
                self.judged["order"] += 1
                if each.zxid < newest:
                    self._wrong("order", f"client {client} saw {newest} before {each}")
                newest = max(newest, each.zxid)

    def _check_real_time(self) -> None:
        """A request that is sent after a response has arrived sees at least the same state."""
        answers = [each for each in self._history.answers if each.error != LOST]
        arrived = sorted(answers, key=lambda each: each.at)
        newest, place = 0, 0
        for each in sorted(answers, key=lambda each: each.sent_at):
            while place < len(arrived) and arrived[place].at < each.sent_at:
                newest = max(newest, arrived[place].zxid)
                place += 1
            self.judged["real time"] += 1
            if each.zxid < newest:
                self._wrong("real time", f"{newest} had been seen before the request of {each}")

    def _check_writes(self) -> None:
        """Each write has a transaction of its own, and each version of a node has one, too."""
        zxids: Counter[int] = Counter()
        versions: dict[tuple[str, int, int], int] = {}
        for each in self._history.answers:
            if each.error != OK:
                continue
            request, stat = each.request, each.stat
            path = each.path or request.path
            if request.kind in WRITES:
                self.judged["writes"] += 1
                zxids[each.zxid] += 1
                if zxids[each.zxid] > 1:
                    self._wrong("writes", f"two writes have the number of {each}")
                if stat is not None and stat.mzxid != each.zxid:
                    self._wrong("writes", f"another number than its own: {each}")
                if stat is not None and request.version not in (-1, stat.version - 1):
                    self._wrong("writes", f"carried out on another version: {each}")
            if stat is not None:
                known = versions.setdefault((path, stat.czxid, stat.version), stat.mzxid)
                if known != stat.mzxid:
                    self._wrong("writes", f"one version has two numbers, {known} and in {each}")

    def _check_reads(self) -> None:
        known: dict[tuple[str, int], bytes] = {}
        for each in self._history.answers:
            kind, path = each.request.kind, each.request.path
            if each.error == LOST or kind == records.CLOSE:
                continue
            self.judged["reads"] += 1
            if each.error == NO_NODE and kind != records.CREATE:
                if not self._changes.may_be_absent(path, each):
                    self._wrong("reads", f"the node must exist: {each}")
            elif each.error == NODE_EXISTS and not each.request.is_sequential:
                if not self._changes.may_exist(path, each):
                    self._wrong("reads", f"the node must not exist: {each}")
            elif each.error == OK and each.stat is not None and kind in records.READS:
                self._check_found(each, each.stat, known)

    def _check_found(self, answer: Answer, stat: Stat, known: dict[tuple[str, int], bytes]) -> None:
        changes, path = self._changes, answer.request.path
        if not stat.czxid <= stat.mzxid <= answer.zxid:
            self._wrong("reads", f"a later state than its number: {answer}")
        later = changes.between(path, stat.mzxid, answer.zxid)
        if later is not None:
            self._wrong("reads", f"{later} is missing from {answer}")
        self._check_owner(answer, stat)
        if answer.request.kind == records.CHILDREN:
            self._check_children(answer)
        if answer.request.kind != records.GET:
            return
        if known.setdefault((path, stat.mzxid), answer.data) != answer.data:
            self._wrong("reads", f"one transaction has two values: {answer}")
        last = changes.last(path, stat.mzxid)
        if changes.path_by_zxid.get(stat.mzxid, path) != path:
            self._wrong("reads", f"the number of another node's change: {answer}")
        elif last is not None and last.zxid == stat.mzxid:
            if last.data != answer.data:
                self._wrong("reads", f"{last} wrote another value than {answer}")
        elif not any(each.request.data == answer.data for each in changes.doubtful):
            self._wrong("reads", f"nobody wrote the value of {answer}")

    def _check_owner(self, answer: Answer, stat: Stat) -> None:
        """The nodes of a session end with it."""
        if not stat.owner:
            return
        self.judged["ephemerals"] += 1
        closed = self._changes.closed.get(stat.owner)
        if closed is not None and closed <= answer.zxid:
            self._wrong("ephemerals", f"session {stat.owner:#x} was closed at {closed}: {answer}")
        if self._changes.has_expired(stat.owner, answer):
            self._wrong("ephemerals", f"session {stat.owner:#x} has expired: {answer}")

    def _check_children(self, answer: Answer) -> None:
        parent = answer.request.path.rstrip("/")
        for name in answer.children:
            if not self._changes.may_exist(f"{parent}/{name}", answer):
                self._wrong("reads", f"{name} must not exist: {answer}")
        for path in self._changes.by_path:
            above, _, name = path.rpartition("/")
            is_missing = above == parent and name not in answer.children
            if is_missing and not self._changes.may_be_absent(path, answer):
                self._wrong("reads", f"{name} must exist: {answer}")

    def _check_watches(self, client: int, every: list[Record]) -> None:
        """A client gets the event of a change before any response that could show the change."""
        active: dict[tuple[str, str], _Watch] = {}
        deleted: set[str] = set()
        for each in every:
            if isinstance(each, Expired):
                active.clear()
            elif isinstance(each, Event):
                self.judged["watches"] += 1
                found = [kind for kind in _kinds(each) if active.pop((kind, each.path), None)]
                # A client that watches a node and its children, and reconnects after the node was
                # deleted, gets two events.
                if not found and each.path not in deleted:
                    self._wrong("watches", f"client {client} has no watch for {each}")
                if each.kind == _DELETED:
                    deleted.add(each.path)
            elif each.error != LOST:
                deleted.clear()
                for (kind, path), watch in list(active.items()):
                    if missed := self._missed(kind, path, watch, each):
                        self._wrong("watches", f"no event for {missed} of {path} before {each}")
                    active[kind, path] = watch._replace(zxid=each.zxid, connection=each.connection)
                if each.request.kind == records.CLOSE:
                    active.clear()
                elif each.request.watch and (kind := _watched(each)):
                    watch = _Watch(each.zxid, each.connection, each.error == NO_NODE)
                    active[kind, each.request.path] = watch

    def _missed(self, kind: str, path: str, watch: _Watch, answer: Answer) -> object:
        if kind == "children":
            return self._changes.children_between(path, watch.zxid, answer.zxid)
        is_new = answer.connection != watch.connection
        if watch.is_of_absence and is_new and self._changes.may_be_absent(path, answer):
            return None  # ZooKeeper does not report what was created and deleted meanwhile
        return self._changes.between(path, watch.zxid, answer.zxid)

    def _check_sessions(self, client: int, every: list[Record]) -> None:
        """A session lasts while its client is heard from, unless it has asked for the end."""
        closing: set[int] = set()
        for each in every:
            if isinstance(each, Answer):
                self.judged["sessions"] += 1
                if each.request.kind == records.CLOSE:
                    closing.add(each.session)
            elif isinstance(each, Expired) and each.session not in closing:
                self.judged["expired"] += 1
                if each.silent_s < each.timeout_s - _SLACK_S:
                    self._wrong("sessions", f"client {client} was heard from: {each}")


def _kinds(event: Event) -> Iterator[str]:
    """Yield the kinds of watches that an event ends."""
    if event.kind != _CHILDREN:
        yield "data"
    if event.kind in (_DELETED, _CHILDREN):
        yield "children"


def _watched(answer: Answer) -> str:
    """Return the kind of watch that a read has left, or "" if it has left none."""
    kind = answer.request.kind
    if answer.error == OK:
        return "children" if kind == records.CHILDREN else "data"
    return "data" if kind == records.EXISTS and answer.error == NO_NODE else ""
