"""A driver that dies as a machine does: with its JVM and all its workers at once."""

from __future__ import annotations

import contextlib
import signal

import psutil

_END_S = 30


def kill_tree(pid: int) -> None:
    """SIGKILL to the process and all it has started, JVMs first; returns when all are gone.

    Killed alone, PySpark's process would leave a JVM that sees its input end, and ends in good
    order: what it was doing may be done by then.
    """
    root = psutil.Process(pid)
    started = root.children(recursive=True)
    for process in sorted(started, key=_is_not_java):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    root.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(started, timeout=_END_S)
    assert not alive, f"still there after SIGKILL: {alive}"


def _is_not_java(process: psutil.Process) -> bool:
    try:
        return "java" not in process.name()
    except psutil.NoSuchProcess:  # it has ended since
        return True
