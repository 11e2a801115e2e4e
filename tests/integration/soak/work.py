"""Everything that works for a living while brokers die, and the end of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin
from barnabas.types import TopicPartition
from tests.integration.soak.compacting import Compacting
from tests.integration.soak.copying import Copying
from tests.integration.soak.passing import Passing
from tests.integration.soak.readings import Reader, Readers
from tests.integration.soak.transactions import Transactions
from tests.kit.clients import java_client
from tests.kit.processes.java_at_work import JavaAtWork, java_at_work
from tests.kit.processes.senders import PARTITIONS, ConfluentSender, OwnSender, Sender, sending

GROUP = "readers"
JAVA_TOPIC, JAVA_GROUP = "sent-by-java", "java-readers"
COPIES, TRANSACTED = "copies", ("transacted-0", "transacted-1")
DEADLINE_S = 120.0

_TURN_S = 0.1
_NEVER_MS = 600_000
# Of each turn. The slower one's records are copied by transactions.
_FAST, _SLOW = 40, 5
_MEMBERS = 2


class Work:
    """Loads, their readers, and what each of them knows. Use it as a context manager."""

    def __init__(self, servers: str, seed: int, directory: Path, *, with_java: bool) -> None:
        self.servers = servers
        self.commits: list[Mapping[TopicPartition, int]] = []
        with SyncAdmin(servers) as admin:
            names = (COPIES, *TRANSACTED)
            admin.create_topics([NewTopic(name, PARTITIONS) for name in names])
        with contextlib.ExitStack() as stack:
            self.fast: Sender = stack.enter_context(sending(_patient, servers, 3))
            self.slow: Sender = stack.enter_context(sending(OwnSender, servers, 3))
            self.java = self._java(stack) if with_java else None
            self._stack = stack.pop_all()
        self.transactions = [Transactions(servers, name, f"{seed} {name}") for name in TRANSACTED]
        topic = self.fast.topic
        self.everything = Readers(lambda begin: Reader(servers, topic, None, begin), 1)
        self.members = Readers(lambda _: Reader(servers, topic, GROUP), _MEMBERS)
        self.copying = Copying(servers, self.slow.topic, COPIES, directory / "copying.log")
        self.compacting = Compacting(servers)
        self.passing = Passing(servers)
        self._stopping = threading.Event()
        self._pacing = threading.Thread(target=self._pace, daemon=True)
        self._pacing.start()

    def _java(self, stack: contextlib.ExitStack) -> JavaAtWork | None:
        """None where there is no Java, or its client cannot be had."""
        try:
            java_client.require_measure()
        except pytest.skip.Exception as missing:
            print(f"without Java: {missing}", flush=True)
            return None
        java = stack.enter_context(
            java_at_work(java_client.require_measure, self.servers, JAVA_TOPIC, PARTITIONS)
        )
        for name in ("one", "two"):
            java.join(name, JAVA_GROUP)
        return java

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever has happened: nothing goes on in a thread or a process."""
        self._stopping.set()
        self._pacing.join()
        with self._stack:
            self.copying.stop()
            for each in self._own:
                each.stop()
            self.members.stop()
            self.everything.stop()

    @property
    def _own(self) -> list[Compacting | Passing | Transactions]:
        """What sends and reads by itself."""
        return [self.compacting, self.passing, *self.transactions]

    # ---- while it runs ----

    @property
    def loads(self) -> list[Sender | JavaAtWork]:
        return [self.fast, self.slow, *([self.java] if self.java else [])]

    @property
    def topics(self) -> list[str]:
        return [*(load.topic for load in self.loads), COPIES, *TRANSACTED]

    def _pace(self) -> None:
        """So many a second, and none to be caught up with that could not be sent."""
        while not self._stopping.wait(_TURN_S):
            for load in self.loads:
                load.allow(_SLOW if load is self.slow else _FAST)

    def goes_on(self) -> None:
        """Until every one of them has got further than it is now."""
        before = self._progress()
        self._wait(
            lambda: {name for name, count in self._progress().items() if count <= before[name]}
        )
        self._note_commits()

    def _wait(self, stuck: Callable[[], set[str]]) -> None:
        """Until none is stuck; readers whose clients hang are replaced."""
        ends_at = time.monotonic() + DEADLINE_S
        while names := stuck():
            for each in self.transactions:
                assert not each.wrong, each.wrong
            if time.monotonic() > ends_at:
                others = names - self._readers.keys()
                assert not others, f"no progress in {DEADLINE_S} s: {others}"
                for name in names:
                    self._readers[name].replace_hung()
                ends_at = time.monotonic() + DEADLINE_S
            time.sleep(_TURN_S)

    def _progress(self) -> dict[str, int]:
        done = {load.topic: load.acknowledged_count() for load in self.loads}
        done |= {each.topic: len(each.outcomes) for each in self.transactions}
        done[self.compacting.topic] = len(self.compacting.acknowledged)
        done |= {name: each.count() for name, each in self._readers.items()}
        if self.java is not None:
            done["Java's group"] = len(self.java.values_read())
        return done

    @property
    def _readers(self) -> dict[str, Readers]:
        return {"everything": self.everything, "group": self.members}

    def _note_commits(self) -> None:
        with SyncAdmin(self.servers) as admin:
            found = admin.list_group_offsets(GROUP)
        self.commits.append({name: each.offset for name, each in found.items()})

    # ---- the end ----

    def finish(self) -> None:
        """Nothing is sent any more, and everything that was is read and copied."""
        self._stopping.set()
        self._pacing.join()
        for each in self._own:
            each.stop()
        self.fast.stop()
        self.slow.stop()
        ends = dict.fromkeys(range(PARTITIONS), 0) | {
            number: len(each) for number, each in enumerate(self.fast.acknowledged)
        }
        self._wait(
            lambda: {name for name, each in self._readers.items() if each.positions() != ends}
        )
        self._note_commits()


def _patient(servers: str, replicas: int) -> Sender:
    return ConfluentSender(servers, replicas, {"message.timeout.ms": _NEVER_MS})
