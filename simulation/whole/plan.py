"""The plan of a run of whole brokers: drawn from the seed, and described in one line.

The dice are the same as in the machines' simulation (`simulation.options`), with additional faults
of whole brokers: a disk that fills up or breaks, clean stops, connections that break or starve.
Every plan has deaths in the middle of a turn, for which `second` is the number of changes of the
disk until then.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from simulation.options import Fault

FAULTS = (
    "kill",
    "bounce",
    "power",
    "power all",
    "stop",
    "pause",
    "cut",
    "cut clients",
    "isolate",
    "reset",
    "slow",
    "store cut",
    "expire",
    "store away",
    "disk full",
    "disk broken",
    "preferred",
    "reassign",
)
KILL_IN_A_TURN, POWER_IN_A_TURN = STRIKES = ("kill in a turn", "power in a turn")
AT_A_DELETION = "power at a deletion"
"""Like `POWER_IN_A_TURN`, but the changes are counted from the next deletion of a log."""
FLIP_AT_A_CRASH = "bit flip at a crash"
"""Like a bit flip, but also in the producers' snapshots, and the broker stops immediately: by a
kill, or by a power cut if `second` is 1."""
CLOCK, DISK_SLOW, BUSY, DESCRIPTORS, FLIP = MACHINE_FAULTS = (
    "clock",
    "disk slow",
    "busy",
    "descriptors",
    "bit flip",
)
"""Temporary faults of one machine: its calendar is wrong, each sync takes long, each turn of its
broker takes longer, files cannot be opened, or a bit of an old segment reads wrong."""

DELETE_RECORDS, ADD_PARTITIONS, TOPIC_CONFIG = OPERATIONS = (
    "delete records",
    "add partitions",
    "topic config",
)
"""Operations on a topic that loses records."""

CLOCK_AT_BOOT, UNREAD, PIPELINED = GUESTS = ("clock at boot", "unread", "pipelined")
"""Faults: a broker is killed and finds a different calendar at its start; clients do not read
their answers, or do not wait for them."""

EMPTIED = "emptied"
"""The fault in which a broker is killed and finds a new disk in place of a log directory.

It happens only while all replicas are in sync, because the old disk's contents are gone.
"""

HUNG, PAUSED_FOLLOWER, REPLACED = DRILLS = ("hung", "paused follower", "disk replaced")
"""Faults that come one at a time, after all others have ended and when all replicas are in sync:
a disk on which no write ends and no error is reported; a pause of a broker that leads nothing
important to a group; an emptied log directory, after a clean stop if `second` is 1."""

MOVE_LOG_DIR = "move log dir"
"""The operation that moves a replica on a broker with two log directories."""

_ALWAYS = ("kill", "power", "pause", "isolate")
_BEGIN_MS = 1500
_HAVE_TWO_LOG_DIRS = 0.3
_HAVE_FLIPS = 0.5
_HAVE_GUESTS = 0.3
_FIRST_WITH_GUESTS = 1_000
_HAVE_EMPTIED = 0.3
_HAVE_DRILLS = 0.4
_FIRST_WITH_DRILLS = 100_000
_SMALL_SEGMENT_BYTES = 8192


class Plan(NamedTuple):
    """The plan of one run."""

    seed: int
    brokers: int = 3
    partitions: int = 2
    lag_time_max_ms: int = 2000
    session_timeout_ms: int = 2000
    flush_interval_messages: int = 1
    segment_bytes: int = 1 << 30
    group_members: int = 2
    is_cleaning: bool = False
    has_keyed: bool = False
    has_shifting: bool = False
    has_fleeting: bool = False
    has_hasty: bool = False
    has_odd: bool = False
    has_two_log_dirs: bool = False
    has_keeper: bool = False
    """Whether the metadata store is our ZooKeeper server."""
    faults_end_at_ms: int = 15_000
    faults: tuple[Fault, ...] = ()
    drills: tuple[Fault, ...] = ()

    def text(self) -> str:
        """Return everything except the faults."""
        flush = self.flush_interval_messages
        return (
            f"{self.brokers} brokers, {self.partitions} partitions of each topic, sessions of "
            f"{self.session_timeout_ms} ms, replica.lag.time.max.ms {self.lag_time_max_ms}, "
            f"{'every record' if flush == 1 else 'nothing'} is flushed at once, "
            f"segments of {self.segment_bytes} bytes, {self.group_members} in the group; "
            f"cleaner {'on' if self.is_cleaning else 'off'}, beside what keeps everything: "
            f"{', '.join(self._others()) or 'nothing'}"
            f"{'; two log directories each' if self.has_two_log_dirs else ''}"
            f"{'; our ZooKeeper server' if self.has_keeper else ''}"
        )

    def _others(self) -> list[str]:
        return [
            name
            for name, is_there in (
                ("a compacted topic", self.has_keyed),
                ("one that forgets by time", self.has_shifting),
                ("one that is deleted and made again", self.has_fleeting),
                ("a writer in haste", self.has_hasty),
                ("a writer of odd records", self.has_odd),
            )
            if is_there
        ]


def draw(seed: int) -> Plan:
    """Draw the plan of a seed; the run itself has separate dice."""
    random = Random(f"plan {seed}")
    brokers = random.choice((3, 3, 3, 4))
    kinds = [kind for kind in FAULTS if kind in _ALWAYS or random.random() < 0.5]
    end_ms = random.choice((10_000, 14_000, 18_000))
    plan = Plan(
        seed,
        brokers,
        partitions=random.choice((1, 2, 2, 3)),
        lag_time_max_ms=random.choice((1000, 2000, 4000)),
        session_timeout_ms=random.choice((1000, 2000, 3000)),
        flush_interval_messages=random.choice((1, 1_000_000)),
        group_members=random.choice((1, 2, 3)),
        faults_end_at_ms=end_ms,
        faults=_draw_faults(random, brokers, kinds, end_ms),
    )
    plan = _with_strikes(plan, Random(f"strikes {seed}"))
    plan = _widened(plan, Random(f"wider {seed}"))
    plan = _with_log_dirs(plan, Random(f"log dirs {seed}"))
    plan = _with_flips(plan, Random(f"flips {seed}"))
    plan = _with_guests(plan, Random(f"guests {seed}"))
    return _with_drills(plan, Random(f"drills {seed}"))


def with_keeper(plan: Plan) -> Plan:
    """Return the plan with our ZooKeeper server as the metadata store, which is away more often."""
    random = Random(f"keeper is away {plan.seed}")
    faults = [each for each in plan.faults if each.kind != "store away"]
    for _ in range(random.choice((2, 3, 5))):
        at_ms = random.randrange(_BEGIN_MS, plan.faults_end_at_ms)
        for_ms = int(random.choice((50, 400, 1500)) * (0.5 + random.random()))
        faults.append(Fault(at_ms, "store away", 1, 2, for_ms))
    return plan._replace(has_keeper=True, faults=tuple(sorted(faults)))


def _with_drills(plan: Plan, random: Random) -> Plan:
    """Add drills, with separate dice. As with guests, the seeds that tests name get none."""
    if plan.seed < _FIRST_WITH_DRILLS:
        return plan
    faults = list(plan.faults)
    if random.random() < _HAVE_EMPTIED:
        for _ in range(random.choice((1, 2))):
            at_ms = random.randrange(_BEGIN_MS, plan.faults_end_at_ms)
            faults.append(Fault(at_ms, EMPTIED, *_broker_and_way(plan, random)))
    drills: list[Fault] = []
    for kind in DRILLS:
        if random.random() < _HAVE_DRILLS:
            drills.append(Fault(len(drills), kind, *_broker_and_way(plan, random)))
    random.shuffle(drills)
    return plan._replace(faults=tuple(sorted(faults)), drills=tuple(drills))


def _broker_and_way(plan: Plan, random: Random) -> tuple[int, int, int]:
    for_ms = int(random.choice((50, 400, 1500)) * (0.5 + random.random()))
    return random.randint(1, plan.brokers), random.randrange(2), for_ms


def _with_guests(plan: Plan, random: Random) -> Plan:
    """Add guests, with separate dice.

    The first seeds get none, because tests rely on what they find.
    """
    if plan.seed < _FIRST_WITH_GUESTS:
        return plan
    faults = list(plan.faults)
    for kind in GUESTS:
        if random.random() < _HAVE_GUESTS:
            for _ in range(random.choice((1, 2, 4))):
                at_ms = random.randrange(_BEGIN_MS, plan.faults_end_at_ms)
                first, second = random.sample(range(1, plan.brokers + 1), 2)
                for_ms = int(random.choice((1000, 2500, 5000)) * (0.5 + random.random()))
                faults.append(Fault(at_ms, kind, first, second, for_ms))
    return plan._replace(faults=tuple(sorted(faults)))


def _with_strikes(plan: Plan, random: Random) -> Plan:
    """Add strikes, with separate dice; most of them happen before the faults end."""
    faults = list(plan.faults)
    for _ in range(random.choice((2, 2, 3))):
        at_ms = random.randrange(_BEGIN_MS, plan.faults_end_at_ms - 2000)
        operations = int(2 ** (random.random() * 8))
        for_ms = int(random.choice((50, 400, 1500)) * (0.5 + random.random()))
        broker = random.randint(1, plan.brokers)
        faults.append(Fault(at_ms, random.choice(STRIKES), broker, operations, for_ms))
    segment_bytes = random.choice((8192, 8192, 1 << 30))
    return plan._replace(segment_bytes=segment_bytes, faults=tuple(sorted(faults)))


def _widened(plan: Plan, random: Random) -> Plan:
    """Add topics that do not keep everything, and machine faults that stop no broker, with
    separate dice."""
    plan = plan._replace(
        is_cleaning=random.random() < 0.6,
        has_keyed=random.random() < 0.5,
        has_shifting=random.random() < 0.5,
        has_fleeting=random.random() < 0.4,
        has_hasty=random.random() < 0.3,
    )
    kinds = [kind for kind in MACHINE_FAULTS if random.random() < 0.4]
    if plan.has_shifting:
        kinds += [kind for kind in OPERATIONS if random.random() < 0.6]
    faults = list(plan.faults)
    for kind in kinds:
        for _ in range(random.choice((1, 2))):
            at_ms = random.randrange(_BEGIN_MS, plan.faults_end_at_ms)
            first, second = random.sample(range(1, plan.brokers + 1), 2)
            for_ms = int(random.choice((1000, 2500, 5000)) * (0.5 + random.random()))
            faults.append(Fault(at_ms, kind, first, second, for_ms))
    has_odd = random.random() < 0.3
    if plan.has_fleeting:
        faults += [at_a_deletion(plan, random) for _ in range(random.choice((1, 2, 3)))]
    return plan._replace(faults=tuple(sorted(faults)), has_odd=has_odd)


def _with_log_dirs(plan: Plan, random: Random) -> Plan:
    """Add moves between log directories, with separate dice: many, because most end before any
    fault affects them."""
    if random.random() >= _HAVE_TWO_LOG_DIRS:
        return plan
    faults = list(plan.faults)
    for _ in range(random.choice((5, 10, 20))):
        at_ms = random.randrange(_BEGIN_MS, plan.faults_end_at_ms)
        broker = random.randint(1, plan.brokers)
        faults.append(Fault(at_ms, MOVE_LOG_DIR, broker, 1, random.randrange(1000)))
    return plan._replace(has_two_log_dirs=True, faults=tuple(sorted(faults)))


def _with_flips(plan: Plan, random: Random) -> Plan:
    """Add flipped bits, with separate dice: late, so that there are cold segments."""
    if random.random() >= _HAVE_FLIPS or plan.segment_bytes > _SMALL_SEGMENT_BYTES:
        return plan
    faults = list(plan.faults)
    for _ in range(random.choice((1, 2, 4))):
        at_ms = random.randrange(plan.faults_end_at_ms // 2, plan.faults_end_at_ms)
        broker, second = random.randint(1, plan.brokers), random.randrange(2)
        for_ms = int(random.choice((50, 400, 1500)) * (0.5 + random.random()))
        faults.append(Fault(at_ms, FLIP_AT_A_CRASH, broker, second, for_ms))
    return plan._replace(faults=tuple(sorted(faults)))


def at_a_deletion(plan: Plan, random: Random) -> Fault:
    """Draw a power cut at some change of the disk, counted from the next deletion of a log."""
    at_ms = random.randrange(_BEGIN_MS, plan.faults_end_at_ms - 2000)
    operations = random.randint(1, 8)
    for_ms = int(random.choice((50, 400, 1500)) * (0.5 + random.random()))
    return Fault(at_ms, AT_A_DELETION, random.randint(1, plan.brokers), operations, for_ms)


def _draw_faults(random: Random, brokers: int, kinds: list[str], end_ms: int) -> tuple[Fault, ...]:
    gap_ms = random.choice((700, 1200, 2000))
    faults: list[Fault] = []
    at_ms = _BEGIN_MS
    while True:
        # Faults come in bursts: most failures need two faults at almost the same time.
        wait_ms = random.expovariate(1 / gap_ms) if random.random() < 0.6 else random.random() * 60
        at_ms += int(wait_ms)
        if at_ms >= end_ms:
            return tuple(faults)
        first, second = random.sample(range(1, brokers + 1), 2)
        for_ms = int(random.choice((50, 400, 1500, 4000)) * (0.5 + random.random()))
        faults.append(Fault(at_ms, random.choice(kinds), first, second, for_ms))
