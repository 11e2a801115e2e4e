"""A worker keeps the memory that it frees, and collects no garbage among what it has loaded."""

from __future__ import annotations

import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pyspark_barnabas import memory

# Without: glibc's own limit, which it would move by itself; whether such blocks are given back then
# depends on what else lies on the heap.
PROGRAM = """
import ctypes
import resource
from pyspark_barnabas.memory import keep_freed_memory
if {keep}:
    keep_freed_memory()
else:
    ctypes.CDLL(None).mallopt(-3, 128 * 1024)
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        fetched = bytearray(8_000_000)
        copied = bytes(fetched)
        del fetched, copied
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(keep: bool) -> int:
    program = PROGRAM.format(keep=keep)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives memory back so")
def test_the_next_fetch_takes_the_last_ones_memory() -> None:
    assert page_faults(keep=True) < 100 < 20 * 8_000_000 // 4096 < page_faults(keep=False)


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_another_allocator_is_left_alone(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(memory, "ctypes", SimpleNamespace())  # has nothing to call
    memory.keep_freed_memory()


COLLECTIONS = """
import gc
import pyarrow, pyspark.sql
from pyspark_barnabas.memory import settle_objects

class Node:
    pass

def cycle():
    node = Node()
    node.itself = node

cycle()
settle_objects("read")
left = sum(isinstance(each, Node) for each in gc.get_objects())
loaded = len(gc.get_objects())
frozen = gc.get_freeze_count()
cycle()
found = gc.collect()
settle_objects("read")
print(left, loaded, frozen, found, gc.get_freeze_count() - frozen)
"""


def test_a_settled_process_collects_only_newer_objects() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECTIONS], capture_output=True, check=True)
    left, loaded, frozen, found, more = map(int, done.stdout.split())
    assert left == 0, "garbage from before was kept"
    assert loaded < 1_000 < 20_000 < frozen
    assert found >= 1, "garbage from after was not collected"
    assert more <= 0, "a second call did something"
