"""What the work of a simulated machine costs, in modelled time: constants, all of them here.

Virtual time stands still while a turn of the loop runs, so that work which holds a loop up would
not be seen at all. Each operation on a disk adds its price to the turn (or to the thread) in which
it is done: the process is held up for so long, and a turn that has spent more than `BUDGET_US` is a
finding.

The prices are those of a slow disk and of logs that are a thousand times as long as those of a
run: what grows with the number of partitions or with the length of a log should stand out with ten
partitions and some hundred records.
"""

from __future__ import annotations

from typing import Final

OPEN_US: Final = 50
READ_US: Final = 20
READ_KIB_US: Final = 250
"""Batches that are read are looked at one by one: a kibibyte is three or four headers."""
COLD_US: Final = 8_000
WRITE_US: Final = 20
WRITE_KIB_US: Final = 4
NAME_US: Final = 100
"""To make, rename or remove a file or a directory."""
LIST_US: Final = 50
ENTRY_US: Final = 2
SYNC_US: Final = 15_000
SLOW_SYNC_US: Final = 1_500_000
"""While a disk is slow."""

BUSY_TURN_US: Final = 2_000
"""What each turn takes of a broker whose machine is busy."""

BUDGET_US: Final = 50_000
"""Of a turn of a broker that serves."""
LEAST_STALL_US: Final = 1_000
"""What a turn spends below that delays no one."""

WORKERS: Final = 6
"""Threads of the loop's own executor, as many as a machine with two cores has."""


def read_us(size: int) -> int:
    """The price of a read of so many bytes that the kernel has in its cache."""
    return READ_US + size * READ_KIB_US // 1024
