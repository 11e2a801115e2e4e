"""The options of a run: drawn from the seed (swarm testing), and short enough for one line of
text."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

# The kinds of fault, with their relative frequencies when all kinds are mixed.
FAULTS = (
    "kill",
    "bounce",
    "power",
    "power bounce",
    "power all",
    "pause",
    "cut",
    "isolate",
    "store cut",
    "expire",
    "reset",
    "slow",
    "stop",
    "flaky store",
    "preferred",
    "reassign",
    "unclean",
    "delete records",
    "delete topic",
    "disk fails",
    "disk full",
)
ALTER_CONFIG = "alter config"  # of a topic: a different min.insync.replicas
EMPTIED = "emptied"  # a broker is killed and comes back with a new disk, once all are in sync
STALL = "stall"  # of a transactional client's request: it arrives after the next request
FIRST_MEMBER = -200
FIRST_TRANSACTIONAL = -50  # the first of those clients; the others count down from it
_ALWAYS = ("kill", "power", "pause", "isolate")
_FIRST_WITH_EMPTIED = 900_000


class Fault(NamedTuple):
    """Something that happens to the cluster at a certain time and for a certain duration;
    `first` and `second` are brokers if it concerns any."""

    at_ms: int
    kind: str
    first: int
    second: int
    for_ms: int


class Options(NamedTuple):
    """The options of one run."""

    seed: int
    brokers: int = 3
    topics: int = 1
    partitions: int = 1
    replication_factor: int = 3
    min_insync_replicas: int = 2
    is_unclean_allowed: bool = False
    lag_time_max_ms: int = 1500
    session_timeout_ms: int = 1500
    flush_interval_ms: int = 2000
    producers: int = 3
    transactional: int = 0
    transaction_partitions: int = 1
    members: int = 0
    """The number of members of consumer groups; there are half as many groups."""
    consumers: int = 1
    pause_between_writes_ms: int = 60
    faults_end_at_ms: int = 20_000
    isr_writers: tuple[int, ...] = ()
    """Brokers below inter.broker.protocol.version 2.7, whose leaders write ISRs themselves."""
    faults: tuple[Fault, ...] = ()

    def text(self) -> str:
        """Return all options except the faults."""
        return (
            f"{self.brokers} brokers, {self.topics} x {self.partitions} partitions, "
            f"RF {self.replication_factor}, min ISR {self.min_insync_replicas}, unclean election "
            f"{'allowed' if self.is_unclean_allowed else 'refused'}, {self.producers} producers, "
            f"{self.transactional} transactional ones, {self.members} group members, ISRs written "
            f"by brokers {self.isr_writers}"
        )


def draw(seed: int) -> Options:
    """Draw the options for a seed; the run itself has separate dice."""
    random = Random(f"options {seed}")
    brokers = random.choice((3, 3, 3, 4, 5))
    replication_factor = random.choice((3, 3, 3, 3, 2, 2, 1))
    kinds = [kind for kind in FAULTS if kind in _ALWAYS or random.random() < 0.5]
    is_unclean_allowed = random.random() < 0.15
    if not is_unclean_allowed and "unclean" in kinds:
        kinds.remove("unclean")
    end_ms = random.choice((15_000, 20_000, 25_000))
    options = Options(
        seed,
        brokers,
        topics=random.choice((1, 1, 2)),
        partitions=random.choice((1, 1, 2)),
        replication_factor=replication_factor,
        min_insync_replicas=random.choice((1, 2, 2)) if replication_factor > 1 else 1,
        is_unclean_allowed=is_unclean_allowed,
        lag_time_max_ms=random.choice((800, 1500, 3000)),
        session_timeout_ms=random.choice((700, 1500, 2500)),
        flush_interval_ms=random.choice((300, 2000, 100_000)),
        producers=random.choice((2, 3, 4)),
        transactional=random.choice((0, 0, 3)),
        consumers=random.choice((1, 2)),
        pause_between_writes_ms=random.choice((30, 60, 90)),
        faults_end_at_ms=end_ms,
        faults=_draw_faults(random, brokers, kinds, end_ms),
    )
    later = Random(f"isr writers {seed}")
    if later.random() < 0.25:
        writers = [each for each in range(1, brokers + 1) if later.random() < 0.6]
        options = options._replace(isr_writers=tuple(writers))
    options = options._replace(members=Random(f"members {seed}").choice((0, 0, 4)))
    faults = [*options.faults, *_draw_config_changes(Random(f"configs {seed}"), options)]
    if options.transactional:
        faults += _draw_stalls(Random(f"stalls {seed}"), end_ms)
    if seed >= _FIRST_WITH_EMPTIED and options.replication_factor > 1:
        # Only from this seed on: tests name the lower seeds and what happens in them.
        faults += _draw_emptied(Random(f"emptied {seed}"), options)
    return options._replace(faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)))


def _draw_faults(random: Random, brokers: int, kinds: list[str], end_ms: int) -> tuple[Fault, ...]:
    gap_ms = random.choice((600, 1200, 2000))
    faults: list[Fault] = []
    at_ms = 1000
    while True:
        # Faults come in bursts: most failures need two faults at almost the same time.
        at_ms += (
            int(random.expovariate(1 / gap_ms)) if random.random() < 0.6 else random.randint(0, 60)
        )
        if at_ms >= end_ms:
            return tuple(faults)
        first, second = random.sample(range(1, brokers + 1), 2)
        for_ms = int(random.choice((50, 400, 1500, 4000)) * (0.5 + random.random()))
        faults.append(Fault(at_ms, random.choice(kinds), first, second, for_ms))


def _draw_config_changes(random: Random, options: Options) -> Iterator[Fault]:
    """Draw config changes if min.insync.replicas can be raised. A value below the initial one would
    weaken the promise."""
    if options.replication_factor == options.min_insync_replicas or random.random() < 0.5:
        return
    at_ms = 1000
    while (at_ms := at_ms + int(random.expovariate(1 / 4000))) < options.faults_end_at_ms:
        yield Fault(at_ms, ALTER_CONFIG, 0, 0, random.randrange(1000))


def _draw_emptied(random: Random, options: Options) -> Iterator[Fault]:
    """Draw emptied disks; most have no effect, because all replicas must be in sync."""
    if random.random() < 0.5:
        return
    for _ in range(random.choice((2, 4, 8))):
        at_ms = random.randrange(1000, options.faults_end_at_ms)
        for_ms = int(random.choice((50, 400, 1500, 4000)) * (0.5 + random.random()))
        yield Fault(at_ms, EMPTIED, random.randint(1, options.brokers), 0, for_ms)


def _draw_stalls(random: Random, end_ms: int) -> Iterator[Fault]:
    """Draw stalls; most last longer than a client's patience with one call, since otherwise it
    would not ask again.

    Without them hardly one EndTxn in a hundred runs arrives so late that it could end the next
    transaction (KIP-890).
    """
    gap_ms = random.choice((2000, 5000))
    at_ms = 1000 + int(random.expovariate(1 / gap_ms))
    while at_ms < end_ms:
        for_ms = int(random.choice((1500, 2500, 5000)) * (0.5 + random.random()))
        yield Fault(at_ms, STALL, 0, 0, for_ms)
        at_ms += int(random.expovariate(1 / gap_ms))
