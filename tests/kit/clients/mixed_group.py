"""One group of four foreign clients, and what each of them has read."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from barnabas.client import NewTopic, SyncAdmin
from barnabas.client.admin.group_admin import GroupDescription
from barnabas.errors import BarnabasError
from tests.kit.clients.group_member import SESSION_MS
from tests.kit.foreign import require_java, require_kafka_jars
from tests.kit.secured.suite import IS_SECURED, java_file
from tests.kit.waiting import wait_until

GROUP, TOPIC, PARTITIONS = "mixed", "work", 8


OPTIONS = ("group.initial.rebalance.delay.ms=200", "offsets.topic.num.partitions=4")


SETTLED_S = 180.0


JAVA_TOOL = "org.apache.kafka.tools.consumer.ConsoleConsumer"


class Member:
    """A member's process, and what it has read so far."""

    def __init__(self, command: list[str], log: Path, *, tells_values: bool = False) -> None:
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._tells_values = tells_values
        self.read: list[str] = []
        self._reading = threading.Thread(target=self._follow)
        self._reading.start()

    def _follow(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.read.append(line.strip() if self._tells_values else line.split()[-1])

    def last_words(self) -> str:
        """Of one that has ended; what the others have to say is no reason."""
        if self.process.poll() is None:
            return ""
        return Path(self._log.name).read_text(errors="replace")[-2_000:] or "none"

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def leave(self) -> None:
        self.process.terminate()
        self._end()

    def _end(self) -> None:
        self.process.wait(120)
        self._reading.join(120)
        self._log.close()


class Stage:
    """The group, a producer that never pauses, and what everybody has read."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.servers = servers
        self._directory = directory
        self.members: list[Member] = []
        self.stopping = threading.Event()
        self._sent = 0
        self._producing = threading.Thread(target=self._produce)
        self._producing.start()

    def member(self, client: str, instance_id: str | None = None) -> Member:
        command = [sys.executable, "-m", "tests.kit.clients.group_member"]
        command += [client, self.servers, GROUP, TOPIC, *([instance_id] if instance_id else [])]
        return self.begin(command, tells_values=False)

    def java_member(self) -> Member:
        properties = self._directory / "consumer.properties"
        properties.write_text(
            f"session.timeout.ms={SESSION_MS}\nheartbeat.interval.ms=300\nclient.id=java\n"
            "auto.commit.interval.ms=200\nauto.offset.reset=earliest\n"
            + (java_file().read_text() if IS_SECURED else "")
        )
        command = [str(require_java()), "-cp", f"{require_kafka_jars()}/*", JAVA_TOOL]
        command += ["--bootstrap-server", self.servers, "--topic", TOPIC, "--group", GROUP]
        command += ["--consumer.config", str(properties)]
        return self.begin(command, tells_values=True)

    def begin(self, command: list[str], *, tells_values: bool) -> Member:
        log = self._directory / f"member-{len(self.members)}.log"
        self.members.append(Member(command, log, tells_values=tells_values))
        return self.members[-1]

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        while not self.stopping.wait(0.01):
            producer.produce(TOPIC, str(self._sent), partition=self._sent % PARTITIONS)
            self._sent += 1
        assert producer.flush(120) == 0

    def described(self) -> GroupDescription | None:
        try:
            with SyncAdmin(self.servers, request_timeout_ms=10_000) as admin:
                group = admin.describe_groups([GROUP], include_events=True)[GROUP]
        except (BarnabasError, OSError):
            return None  # the broker is not there at this moment
        return group

    def settles(self, *clients: str) -> GroupDescription:
        """Waits until exactly these are in the group and share all partitions, each having one
        owner."""
        found: list[GroupDescription] = []

        def is_settled() -> bool:
            group = self.described()
            if group is None or group.state != "Stable":
                return False
            owned = [each for member in group.members for each in member.partitions]
            assert len(owned) == len(set(owned)), f"two owners in one generation: {group}"
            found.append(group)
            names = sorted(member.client_id for member in group.members)
            return names == sorted(clients) and len(owned) == PARTITIONS

        try:
            wait_until(is_settled, SETTLED_S)
        except AssertionError as error:
            words = [each.last_words() for each in self.members]
            raise AssertionError(f"wanted {clients}, last seen {found[-1:]}; {words}") from error
        return found[-1]

    def progresses(self) -> None:
        """Waits until everything that has been sent up to now has been read by somebody."""
        wanted = set(map(str, range(self._sent)))
        wait_until(lambda: wanted <= self.seen(), SETTLED_S)

    def seen(self) -> set[str]:
        return {value for member in self.members for value in list(member.read)}

    def end(self) -> tuple[int, int]:
        """How many records were sent, and how many readings there were of them."""
        self.stopping.set()
        self._producing.join(180)
        try:
            self.progresses()
        finally:
            for member in self.members:
                member.kill()
        return self._sent, sum(len(member.read) for member in self.members)


@contextmanager
def staged(servers: str, directory: Path) -> Iterator[Stage]:
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
    stage = Stage(servers, directory)
    try:
        yield stage
    except BaseException:
        stage.stopping.set()
        for member in stage.members:
            member.kill()
        raise
