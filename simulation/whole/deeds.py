"""Records what a run did to its brokers, what the metadata store decided, and which events the
brokers reported. The causes of events are compared with this record (`causes`).

All times are true time in milliseconds. A broker's events are collected from its event log, the
last of them when its process ends: a client could have read what had been reported by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.server import Server
from barnabas.cluster import layout
from barnabas.cluster.layout import StateNode
from barnabas.cluster.nodes import Node, Stage, Tree
from barnabas.cluster.store import Operation
from barnabas.events import Event, EventLog
from barnabas.types import TopicPartition
from simulation.whole.brokers import Brokers, SimBroker
from simulation.whole.lives import Life
from simulation.whole.loop import VirtualLoop
from simulation.whole.store import Observer

_ALL_EVENTS = 1 << 30
_NEVER = 1 << 62


class Deed(NamedTuple):
    """A fault or an operation that took effect. `second`: the other broker of a cut."""

    kind: str
    first: int
    second: int
    at_ms: int
    until_ms: int


class Span:
    """One run of a broker's process."""

    __slots__ = ("begun_ms", "broker_id", "collected", "ended_ms", "life", "log", "server")

    def __init__(self, broker_id: int, life: Life, server: Server, begun_ms: int) -> None:
        self.broker_id = broker_id
        self.life = life
        self.server = server
        self.begun_ms = begun_ms
        self.ended_ms = _NEVER
        self.log: EventLog = server.events
        self.collected = self.log.first - 1

    def __str__(self) -> str:
        return self.life.name


class Change:
    """A decided change of a partition's state node."""

    __slots__ = (
        "after",
        "answered_ms",
        "at_ms",
        "before",
        "is_deletion",
        "is_move",
        "name",
        "replicas",
        "span",
        "version",
    )

    def __init__(
        self, name: TopicPartition, states: tuple[StateNode, StateNode], version: int, at_ms: int
    ) -> None:
        self.name = name
        self.before, self.after = states
        self.version = version
        """The partition epoch after the change."""
        self.at_ms = at_ms
        self.answered_ms: int | None = None
        """When the process that committed the change learned that it was decided."""
        self.span: Span | None = None
        """The process that committed the change."""
        self.replicas: tuple[int, ...] = ()
        self.is_deletion = False
        """Whether the topic is being deleted, so that it no longer has a leader."""
        self.is_move = False
        """Whether the replicas were changed in the same commit."""

    def __str__(self) -> str:
        was, now = self.before, self.after
        return (
            f"{self.name} from leader {was.leader}, ISR {was.isr} to leader {now.leader}, ISR "
            f"{now.isr} in epoch {now.leader_epoch}, version {self.version}, by {self.span}"
        )


class Registration:
    """A broker's registration, or a controller's term."""

    __slots__ = ("began_ms", "broker_id", "ended_ms", "has_left")

    def __init__(self, broker_id: int, began_ms: int) -> None:
        self.broker_id = broker_id
        self.began_ms = began_ms
        self.ended_ms = _NEVER
        self.has_left = False
        """Whether its session ended at its own request."""


class Reported(NamedTuple):
    """An event, and when it had been reported at the latest."""

    span: Span
    at_ms: int
    event: Event


class Deeds(Observer):
    """The record of a run. It only watches the run, and changes nothing in it."""

    def __init__(self, loop: VirtualLoop, tree: Tree, brokers: Brokers) -> None:
        self._loop = loop
        self._tree = tree
        self._brokers = brokers
        self.deeds: list[Deed] = []
        self.spans: list[Span] = []
        self.changes: list[Change] = []
        self.registrations: list[Registration] = []
        self.terms: list[Registration] = []
        self.reported: list[Reported] = []
        self.creations: list[tuple[TopicPartition, int]] = []
        """The partitions that got their first state, and when."""
        self.deletions: list[tuple[str, int]] = []
        """The requested deletions: a topic, and when its deletion was requested."""
        self.stops: list[tuple[int, int]] = []
        """The clean stops: a broker, and when it was asked."""
        self._lives: dict[int, Life | None] = {}
        self._by_life: dict[int, Span] = {}
        self._left: set[int] = set()
        self._unanswered: dict[int, tuple[Sequence[Operation], list[Change]]] = {}
        for broker in brokers.by_id.values():
            broker.on_start = self._begins
            broker.on_stop = self._stops

    @property
    def now_ms(self) -> int:
        return self._loop.now_us // 1000

    def did(self, kind: str, first: int, second: int = 0, for_ms: int = 0) -> None:
        """Record a fault or an operation that takes effect now."""
        self.deeds.append(Deed(kind, first, second, self.now_ms, self.now_ms + for_ms))

    def look(self) -> None:
        """Collect the events of the brokers that are running now."""
        for span in self._by_life.values():
            self._collect(span)

    def _begins(self, broker: SimBroker) -> None:
        life, server = broker.life, broker.server
        assert life is not None and server is not None
        span = Span(broker.broker_id, life, server, self.now_ms)
        self.spans.append(span)
        self._by_life[id(life)] = span

        def ends() -> None:
            self._collect(span)
            span.ended_ms = self.now_ms
            del self._by_life[id(life)]

        life.at_end(ends)

    def _stops(self, broker: SimBroker) -> None:
        self.stops.append((broker.broker_id, self.now_ms))

    def _collect(self, span: Span) -> None:
        log = span.log
        if log.last > span.collected:
            found = log.after(span.collected, _ALL_EVENTS)
            span.collected = log.last
            self.reported += [Reported(span, self.now_ms, each) for each in found]

    # ---- the metadata store ----

    def opened(self, session_id: int, life: Life | None) -> None:
        self._lives[session_id] = life

    def closes(self, session_id: int) -> None:
        self._left.add(session_id)

    def commits(self, session_id: int, operations: Sequence[Operation], stage: Stage) -> None:
        made = []
        for path, node in stage.nodes.items():
            was = self._tree.nodes.get(path)
            if path.startswith(f"{layout.BROKER_IDS}/"):
                broker_id = int(path.rpartition("/")[2])
                self._turn(self.registrations, broker_id, session_id, (was, node))
            elif path == layout.CONTROLLER:
                span = self._span_of(session_id)
                owner = -1 if span is None else span.broker_id
                self._turn(self.terms, owner, session_id, (was, node))
            elif path.startswith(f"{layout.DELETE_TOPICS}/") and node is not None:
                self.deletions.append((path.rpartition("/")[2], self.now_ms))
            elif (name := layout.partition_of_state(path)) is not None:
                if was is None and node is not None:
                    self.creations.append((name, self.now_ms))
                if was is None or node is None or was.data == node.data:
                    continue
                states = (
                    layout.decode_state(*name, was.data),
                    layout.decode_state(*name, node.data),
                )
                made.append(change := Change(name, states, node.version, self.now_ms))
                change.span = self._span_of(session_id)
                change.is_deletion = layout.delete_topic_path(name.topic) in self._tree.nodes
                topic_path = layout.topic_path(name.topic)
                change.is_move = topic_path in stage.nodes
                topic = stage.nodes.get(topic_path) or self._tree.nodes.get(topic_path)
                if topic is not None:
                    replicas = layout.decode_topic(name.topic, topic.data).replicas
                    change.replicas = tuple(replicas.get(name.partition, ()))
        if made:
            self.changes += made
            self._unanswered[id(operations)] = operations, made

    def answered(self, operations: Sequence[Operation]) -> None:
        for change in self._unanswered.pop(id(operations), ((), ()))[1]:
            change.answered_ms = self.now_ms

    def _turn(
        self,
        among: list[Registration],
        broker_id: int,
        session_id: int,
        nodes: tuple[Node | None, Node | None],
    ) -> None:
        """Record that a registration or a term began or ended, if the node has been removed or
        recreated.
        """
        was, node = nodes
        if was is not None and node is not None and was.czxid == node.czxid:
            return
        if was is not None:
            last = among[-1]
            if among is self.registrations:
                last = next(each for each in reversed(among) if each.broker_id == broker_id)
            last.ended_ms = self.now_ms
            last.has_left = session_id in self._left
        if node is not None:
            among.append(Registration(broker_id, self.now_ms))

    def _span_of(self, session_id: int) -> Span | None:
        life = self._lives.get(session_id)
        return next((each for each in reversed(self.spans) if each.life is life), None)
