"""Everything that is measured without a Kafka, in a few minutes, and one table of it.

    python -m benchmarks [--json FILE] [--quick] [--fill-memory]

`off` is how far a figure is from its goal: 1 just reached it, 2 is twice off. What is compared with
a bare server, or with another way to do it, has that in `other` and the ratio behind it. Each part
can be run alone and has more to say: `python -m benchmarks.pipelined`, `.workloads`, `.startup`,
`.recovery`, `.disk`, `.groups`, `.transactions`, `.levels`, `.compaction`, `.producers`,
`.held_up`, `.partitions`, `.truncation`, `.authorization`; `python -m benchmarks.kafka` puts a
real Kafka beside the workloads. Of `.levels` this runs the part of one broker; alone it has three
as well, and so have `.cluster` and `.failover`.
"""

from __future__ import annotations

import platform
from collections.abc import Callable

from rich.console import Console

from benchmarks import (
    authorization,
    compaction,
    disk,
    groups,
    held_up,
    levels,
    partitions,
    pipelined,
    producers,
    recovery,
    startup,
    transactions,
    truncation,
    workloads,
)
from benchmarks.figures import Figure, parser_of, show
from benchmarks.warm_memory import WarmMemory

COMPACTED_MEGABYTES = 200


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of it: does it run?")
    parser.add_argument("--fill-memory", action="store_true", help="slow; see warm_memory.py")
    options = parser.parse_args()
    with WarmMemory(wanted=options.fill_memory) as memory:
        figures = measure(0.05 if options.quick else 1.0, memory)
        state = memory.state
    python = f"{platform.python_implementation()} {platform.python_version()}"
    show(f"Barnabas on {python}, {platform.machine()}, {state}", figures, options.json, "other")


def measure(share: float, memory: WarmMemory) -> list[Figure]:
    """All figures, with that share of the usual records, seconds and partitions."""
    count = max(20, int(2000 * share))
    say = Console(stderr=True).print
    figures: list[Figure] = []
    parts: list[tuple[str, Callable[[], list[Figure]]]] = [
        ("start and idle", lambda: startup.measure(max(1, int(11 * share)), count, count)),
        ("recovery", lambda: recovery.measure(max(1, int(512 * share)))),
        ("disk", lambda: disk.measure(max(1, int(128 * share)))),
        ("pipelined", lambda: pipelined.measure(list(pipelined.CASES), 2 * share, memory)),
        ("groups", lambda: groups.measure(int(groups.MEMBERS * share))),
        ("transactions", lambda: transactions.measure(seconds=transactions.SECONDS * share)),
        ("levels", lambda: levels.measure_alone(share)),
        ("compaction", lambda: compaction.measure(max(4, int(COMPACTED_MEGABYTES * share)))),
        ("producers", lambda: producers.measure(int(producers.PRODUCERS * share))),
        ("held up", lambda: held_up.measure(share)),
        ("partitions", lambda: partitions.measure(max(20, int(partitions.PARTITIONS * share)))),
        ("truncation", lambda: _truncation(share)),
        ("authorization", lambda: _authorization(share)),
        ("clients", lambda: workloads.measure_alone(share, memory)),
    ]
    for name, part in parts:
        say(f"{name} ...")
        figures += part()
    return figures


def _authorization(share: float) -> list[Figure]:
    return authorization.measure(
        max(100, int(authorization.RULES * share)), authorization.SECONDS * share
    )


def _truncation(share: float) -> list[Figure]:
    return truncation.measure(
        max(2, int(truncation.CUTS * share)), max(20, int(truncation.PARTITIONS * share))
    )


if __name__ == "__main__":
    main()
