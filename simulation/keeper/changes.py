"""What is known about the changes of a tree, from the responses that its clients have received."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

from simulation.keeper import records
from simulation.keeper.records import DELETE, OK, WRITES, Answer, Expired, History

GONE = "gone"


class Change(NamedTuple):
    """An acknowledged change of a node."""

    zxid: int
    kind: str
    owner: int
    data: bytes


class Changes:
    """The acknowledged changes by path, and what may have happened in addition to them."""

    def __init__(self, history: History) -> None:
        self.by_path: dict[str, list[Change]] = defaultdict(list)
        self.path_by_zxid: dict[int, str] = {}
        self.closed: dict[int, int] = {}
        """The zxid at which each session was closed."""
        self.expired: dict[int, float] = {}
        """The time at which a client learned that its session has expired."""
        self.ended: set[int] = set()
        """All sessions that may have ended."""
        self.doubtful: list[Answer] = []
        self._note(history)
        self._add_ends_of_ephemerals()
        for path in self.by_path:
            self.by_path[path].sort()

    def _note(self, history: History) -> None:
        for every in history.by_client:
            for each in every:
                if isinstance(each, Expired):
                    self.expired[each.session] = each.at
                    self.ended.add(each.session)
        for answer in history.answers:
            kind = answer.request.kind
            if kind == records.CLOSE:
                self.ended.add(answer.session)
                if answer.error == OK:
                    self.closed[answer.session] = answer.zxid
            elif kind in WRITES and answer.error == records.LOST:
                self.doubtful.append(answer)
            elif kind in WRITES and answer.error == OK:
                self._add(answer)

    def _add(self, answer: Answer) -> None:
        request = answer.request
        path = answer.path or request.path
        owner = answer.stat.owner if answer.stat is not None else 0
        self.by_path[path].append(Change(answer.zxid, request.kind, owner, request.data))
        self.path_by_zxid[answer.zxid] = path

    def _add_ends_of_ephemerals(self) -> None:
        deletions = {each.request.path for each in self.doubtful if each.request.kind == DELETE}
        # A node that may have been deleted before the end of its session need not end with it.
        for path in self.by_path.keys() - deletions:
            for session, zxid in self.closed.items():
                last = self.last(path, zxid)
                if last is not None and last.kind != DELETE and last.owner == session:
                    self.by_path[path].append(Change(zxid, GONE, 0, b""))

    def last(self, path: str, zxid: int) -> Change | None:
        """Return the last acknowledged change of a path up to this transaction."""
        found = [each for each in self.by_path.get(path, ()) if each.zxid <= zxid]
        return max(found, default=None)

    def between(self, path: str, after: int, zxid: int) -> Change | None:
        """Return an acknowledged change of a path in this range, or None."""
        changes = self.by_path.get(path, [])
        place = bisect_right(changes, after, key=lambda each: each.zxid)
        return changes[place] if place < len(changes) and changes[place].zxid <= zxid else None

    def children_between(self, path: str, after: int, zxid: int) -> Change | None:
        """Return a creation or deletion of a child in this range, or None."""
        for child in self.by_path:
            if child.rpartition("/")[0] != path.rstrip("/"):
                continue
            for each in self.by_path[child]:
                if after < each.zxid <= zxid and each.kind != records.SET:
                    return each
        return None

    def may_have(self, kind: str, path: str, before: float) -> bool:
        """Return whether a request without a response may have changed the path in this way."""
        for each in self.doubtful:
            request = each.request
            is_same = request.path == path or (
                request.is_sequential and path.startswith(request.path)
            )
            if is_same and request.kind == kind and each.sent_at < before:
                return True
        return False

    def may_be_absent(self, path: str, answer: Answer) -> bool:
        """Return whether the node may have been missing when this response was given."""
        last = self.last(path, answer.zxid)
        if last is None or last.kind in (DELETE, GONE):
            return True
        return last.owner in self.ended or self.may_have(DELETE, path, answer.at)

    def may_exist(self, path: str, answer: Answer) -> bool:
        """Return whether the node may have existed when this response was given."""
        if self.may_have(records.CREATE, path, answer.at):
            return True
        last = self.last(path, answer.zxid)
        if last is None or last.kind in (DELETE, GONE):
            return False
        return not self.has_expired(last.owner, answer)

    def has_expired(self, session: int, answer: Answer) -> bool:
        """Return whether the client of the session knew of its end before this request."""
        return self.expired.get(session, float("inf")) < answer.sent_at
