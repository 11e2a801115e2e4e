"""Defines what happens in the demonstration, and when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple


class Action(Enum):
    """Names the actions of the demonstration."""

    JOIN = "join"
    LEAVE = "leave"
    KILL_BROKER = "kill-broker"
    START_BROKER = "start-broker"
    START_PROCESS = "start-process"
    KILL_PROCESS = "kill-process"
    PAUSE_BROKER = "pause-broker"
    RESUME_BROKER = "resume-broker"
    CRASH_LOOP = "crash-loop"
    HELP = "help"
    END_HELP = "end-help"


class Step(NamedTuple):
    """Represents a step of the script: its time, its action, and the page of the console that
    explains it.
    """

    at_s: int
    action: Action
    says: str
    see: str = ""
    """The page of the console, such as "#/groups/analytics"."""


KILLED_BROKER: Final = 2
PAUSED_BROKER: Final = 2

SCRIPT: Final[Sequence[Step]] = (
    Step(2, Action.START_PROCESS, "The group reports gets its only member, a process."),
    Step(
        8,
        Action.JOIN,
        "A third consumer joins the group analytics, which rebalances.",
        "#/groups/analytics",
    ),
    Step(
        20,
        Action.KILL_BROKER,
        f"Broker {KILLED_BROKER} is killed: its partitions get new leaders.",
        "#/events?kind=election",
    ),
    Step(
        32,
        Action.START_BROKER,
        f"Broker {KILLED_BROKER} starts again, and its replicas catch up.",
        "#/events?kind=isr-expand",
    ),
    Step(
        42,
        Action.KILL_PROCESS,
        "The member of reports is killed. Its lag grows, and within six seconds the group "
        "notices that it is gone.",
        "#/groups/reports",
    ),
    Step(
        60,
        Action.PAUSE_BROKER,
        f"Broker {PAUSED_BROKER} is paused: its replicas fall out of the ISR.",
        "#/events?kind=isr-shrink",
    ),
    Step(
        80,
        Action.RESUME_BROKER,
        f"Broker {PAUSED_BROKER} continues, and catches up.",
        "#/events?kind=isr-expand",
    ),
    Step(
        84,
        Action.HELP,
        "A second consumer helps the group invoices, which has fallen behind all the time: it "
        "catches up.",
        "#/groups/invoices",
    ),
    Step(
        90,
        Action.CRASH_LOOP,
        "A third consumer of checkout ends as soon as it has started, again and again: the group "
        "rebalances each time.",
        "#/groups/checkout",
    ),
    Step(
        112,
        Action.END_HELP,
        "The second consumer leaves invoices, which falls behind again.",
        "#/groups/invoices",
    ),
    Step(
        115,
        Action.LEAVE,
        "The third consumer leaves the group analytics, which rebalances.",
        "#/groups/analytics",
    ),
)
ROUND_S: Final = 120
"""The length of the script, after which it starts again."""
