"""The prices of a simulated machine's work in modelled time, all of which are constants in this
module.

Virtual time stands still while a turn of the loop runs, so work that holds a loop up would not
show. Each operation on a disk adds its price to the turn (or to the thread) in which it is done:
the process is held up for that time, and a turn that has spent more than `BUDGET_US` is a finding.

The prices assume a slow disk and logs a thousand times as long as those of a run: work that grows
with the number of partitions or with the length of a log should stand out with ten partitions and a
few hundred records.
"""

from __future__ import annotations

from typing import Final

OPEN_US: Final = 50
READ_US: Final = 20
READ_KIB_US: Final = 250
"""Batches that are read are inspected one by one, and a kibibyte contains three or four headers."""
COLD_US: Final = 8_000
WRITE_US: Final = 20
WRITE_KIB_US: Final = 4
NAME_US: Final = 100
"""The price of creating, renaming or removing a file or a directory."""
LIST_US: Final = 50
ENTRY_US: Final = 2
SYNC_US: Final = 15_000
SLOW_SYNC_US: Final = 1_500_000
"""The price of a sync while a disk is slow."""

BUSY_TURN_US: Final = 2_000
"""The time that each turn takes from a broker on a busy machine."""

BUDGET_US: Final = 50_000
"""The budget of a turn of a broker that serves."""
LEAST_STALL_US: Final = 1_000
"""A turn that spends less than this delays no other work."""

WORKERS: Final = 6
"""The threads of the loop's own executor: as many as on a machine with two cores."""


def read_us(size: int) -> int:
    """Return the price of reading this many bytes from the kernel's cache."""
    return READ_US + size * READ_KIB_US // 1024
