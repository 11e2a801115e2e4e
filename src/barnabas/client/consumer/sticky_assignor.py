"""Implements the sticky assignor, which balances first and then minimises moves (AS-4, AS-5).

The algorithm (KIP-54) has three steps. First, members keep the partitions they have. Next, each
unassigned partition is given to the subscriber with the fewest partitions; partitions with few
possible owners come first. Finally, partitions are moved for as long as this makes the distribution
more even, if necessary along a chain of members: A may have to give to B, which shares a topic with
it, so that B can give to C. Once there is no chain from a member to another member with at least
two fewer partitions, no assignment is more even (a semi-matching without a cost-reducing path is
optimal). The result is therefore balanced for any combination of subscriptions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapreplace

from barnabas.client.consumer.group_protocol import GroupAssignment, GroupMember
from barnabas.types import TopicPartition

_Step = tuple[int, str, int]  # (giver, topic of the partition, taker)


def assign_sticky(topics: Mapping[str, int], members: Sequence[GroupMember]) -> GroupAssignment:
    distribution = _Distribution(topics, members)
    distribution.keep()  # each member keeps its partitions of topics that it still subscribes to
    distribution.place_orphans()
    distribution.level()
    return {
        member.member_id: list(held)
        for member, held in zip(distribution.members, distribution.held, strict=True)
    }


def withhold_moving(assignment: GroupAssignment, members: Sequence[GroupMember]) -> GroupAssignment:
    """Return the assignment without the partitions that another member still owns."""
    owned = {member.member_id: frozenset(member.owned) for member in members}
    claims: dict[TopicPartition, int] = {}
    for partitions in owned.values():
        for partition in partitions:
            claims[partition] = claims.get(partition, 0) + 1
    return {
        # A partition that another member still claims is assigned in the next rebalance, which that
        # member requests once it has revoked it (KIP-429).
        member_id: [
            partition
            for partition in partitions
            if partition in owned[member_id] or not claims.get(partition)
        ]
        for member_id, partitions in assignment.items()
    }


class _Distribution:
    """An assignment in progress. Members are identified by their index in rank order."""

    def __init__(self, topics: Mapping[str, int], members: Sequence[GroupMember]) -> None:
        self.members = sorted(members, key=lambda member: member.rank)
        self.held: list[dict[TopicPartition, None]] = [{} for _ in self.members]
        self._topics = topics
        self._subscribers: dict[str, tuple[int, ...]] = dict.fromkeys(topics, ())
        for place, member in enumerate(self.members):
            for topic in dict.fromkeys(member.topics):
                if topic in topics:
                    self._subscribers[topic] += (place,)
        self._before = self._owners()
        self._shelves: list[_Shelf] = []  # used while partitions move

    def _owners(self) -> dict[TopicPartition, int]:
        """Return the owner of each partition. The claim with the latest generation counts.

        If two claims have this generation, the partition has no owner.
        """
        owners: dict[TopicPartition, int | None] = {}
        latest: dict[TopicPartition, int] = {}
        for place, member in enumerate(self.members):
            for partition in dict.fromkeys(member.owned):
                if partition.partition >= self._topics.get(partition.topic, 0):
                    continue  # the partition has since been deleted
                if member.generation > latest.get(partition, -2):
                    owners[partition], latest[partition] = place, member.generation
                elif member.generation == latest[partition]:
                    owners[partition] = None
        return {partition: place for partition, place in owners.items() if place is not None}

    def keep(self) -> None:
        """Leave each partition with its owner if the owner is still subscribed to the topic."""
        subscribed = [frozenset(member.topics) for member in self.members]
        for partition, place in self._before.items():
            if partition.topic in subscribed[place]:
                self.held[place][partition] = None

    def place_orphans(self) -> None:
        """Give each partition without an owner to the subscriber with the fewest (AS-4)."""
        taken = {partition for held in self.held for partition in held}
        # Keep one heap, ordered by number of partitions, for each set of subscribers. The numbers
        # only grow, so an outdated entry is too low and reaches the top early enough to be
        # corrected.
        heaps: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        # Topics with few subscribers come first, because topics with more subscribers can even out
        # the remaining imbalance.
        by_choice = sorted(self._topics, key=lambda topic: (len(self._subscribers[topic]), topic))
        for topic in by_choice:
            subscribers = self._subscribers[topic]
            if not subscribers:
                continue
            if subscribers not in heaps:
                heaps[subscribers] = sorted((len(self.held[place]), place) for place in subscribers)
            heap = heaps[subscribers]
            for number in range(self._topics[topic]):
                partition = TopicPartition(topic, number)
                if partition in taken:
                    continue
                while heap[0][0] != len(self.held[heap[0][1]]):
                    heapreplace(heap, (len(self.held[heap[0][1]]), heap[0][1]))
                self.held[heap[0][1]][partition] = None

    def level(self) -> None:
        """Move partitions until no chain of moves makes the distribution more even."""
        settled: set[int] = set()
        self._shelves = [_Shelf(place) for place in range(len(self.held))]
        for shelf, held in zip(self._shelves, self.held, strict=True):
            for partition in held:
                shelf.put(partition, self._before.get(partition))
        while True:
            giving = [place for place in range(len(self.held)) if place not in settled]
            if not giving:
                return
            giver = max(giving, key=lambda place: (len(self.held[place]), -place))
            if len(self.held[giver]) < min(len(self.held[place]) for place in giving) + 2:
                return
            chain, reached = self._chain(giver)
            if not chain:
                # All reachable members have as many partitions as the giver, or one fewer. Their
                # numbers are final, because no member with fewer partitions will give them any.
                settled |= reached
            for source, topic, target in chain:
                partition = self._shelves[source].take(topic, target)
                self._shelves[target].put(partition, self._before.get(partition))
                del self.held[source][partition]
                self.held[target][partition] = None

    def _chain(self, giver: int) -> tuple[list[_Step], set[int]]:
        """Return the chain from `giver` that moves the fewest kept partitions.

        Also returns the members that the search has reached. Chains are searched in the order of
        their cost. Moving a partition costs 0 if the partition is new to its holder, otherwise 1.
        Topics are nodes of the graph as well, because a member can give a partition of a topic to
        any subscriber of the topic.
        """
        limit = len(self.held[giver]) - 2
        direct = self._direct(giver, limit)
        if direct is not None:
            return [direct], set()
        came: dict[int, tuple[int, str]] = {}
        done: set[int | str] = set()
        queue: deque[tuple[int | str, int, str]] = deque([(giver, giver, "")])
        while queue:
            node, source, topic = queue.popleft()
            if node in done:
                continue
            done.add(node)
            if isinstance(node, str):
                takers = [place for place in self._subscribers[node] if place not in done]
                taker = min(takers, key=lambda place: len(self.held[place]), default=giver)
                if len(self.held[taker]) <= limit:
                    came[taker] = source, node
                    return self._steps(giver, taker, came), set()
                queue.extendleft((place, source, node) for place in reversed(takers))
                continue
            if node != giver:
                came[node] = source, topic
            shelf = self._shelves[node]
            for each_topic in shelf.topics:
                if each_topic not in done:
                    # Free steps go to the front and all others to the back, so the queue remains
                    # ordered by cost.
                    put = queue.appendleft if each_topic in shelf.moved else queue.append
                    put((each_topic, node, each_topic))
        return [], {node for node in done if isinstance(node, int)}

    def _steps(self, giver: int, taker: int, came: Mapping[int, tuple[int, str]]) -> list[_Step]:
        # Apply the chain from its end, so that each member gives before it receives, and never
        # passes on a partition that it has just received.
        steps: list[_Step] = []
        while taker != giver:
            source, topic = came[taker]
            steps.append((source, topic, taker))
            taker = source
        return steps

    def _direct(self, giver: int, limit: int) -> _Step | None:
        """Return the first step that the search would consider, if this step is sufficient.

        It usually is, and then the giver's other topics need not be considered.
        """
        shelf = self._shelves[giver]
        topic = next(reversed(shelf.moved), None) or next(iter(shelf.topics))
        takers = [place for place in self._subscribers[topic] if place != giver]
        taker = min(takers, key=lambda place: len(self.held[place]), default=giver)
        return (giver, topic, taker) if len(self.held[taker]) <= limit else None


class _Shelf:
    """The partitions of a member, by topic, and within a topic by previous owner.

    This lets a member with thousands of partitions give them away one by one without a search.
    """

    __slots__ = ("moved", "place", "topics")

    def __init__(self, place: int) -> None:
        self.place = place
        self.topics: dict[str, dict[int | None, dict[TopicPartition, None]]] = {}
        self.moved: dict[str, None] = {}  # topics in which the member has a new partition

    def put(self, partition: TopicPartition, before: int | None) -> None:
        origins = self.topics.setdefault(partition.topic, {})
        origins.setdefault(before, {})[partition] = None
        if before != self.place:
            self.moved[partition.topic] = None

    def take(self, topic: str, target: int) -> TopicPartition:
        """Remove a partition from the shelf, to be given to `target`.

        Prefers a partition that `target` used to own, then a partition that is new to this member,
        and finally the last partition.
        """
        origins = self.topics[topic]
        origin: int | None = self.place
        if target in origins:
            origin = target
        elif topic in self.moved:
            origin = next(each for each in reversed(origins) if each != self.place)
        partition, _ = origins[origin].popitem()
        if not origins[origin]:
            del origins[origin]
            if all(each == self.place for each in origins):
                self.moved.pop(topic, None)
        if not origins:
            del self.topics[topic]
        return partition
