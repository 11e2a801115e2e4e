"""Implements the parent's side of a broker that runs in a separate process.

Each call is sent to `child` over a pipe as one line and answered with one line. The process ends
when its parent ends, for whatever reason: either the pipe closes or, if another process keeps it
open, the child notices that its parent has exited.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from barnabas.clock import SystemClock
from barnabas.errors import ConfigError

_SOURCES: Final = Path(__file__).parents[3]
# The sources are added at the end of the path, in case only the parent could import this package.
_PROGRAM: Final = f"""\
import sys
sys.path.append({str(_SOURCES)!r})
from barnabas.testing.embedded.child import main
sys.exit(main())
"""
_EXIT_S: Final = 5.0
_READ_BYTES: Final = 65_536

_ERRORS: Final = {"ConfigError": ConfigError, "TimeoutError": TimeoutError}


class ChildProcess:
    """Creates a `Broker` or `Cluster` (`kind`) with these arguments in a new process.

    Raises ConfigError or OSError with the message of the constructor's error.
    """

    def __init__(self, kind: str, arguments: dict[str, Any], patience_s: float) -> None:
        self._patience_s = patience_s
        self._process = subprocess.Popen(
            # Without -P, a directory called barnabas in the working directory would hide the
            # package.
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._unread = b""
        try:
            self.call("make", kind, arguments, os.getpid())
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method in the process, and return its result or raise its error."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([method, *arguments]).encode() + b"\n")
        except BrokenPipeError:
            raise self._has_ended() from None
        answer = json.loads(self._line(method))
        if "error" in answer:
            # Look the class up by its name: JSON cannot carry exceptions.
            raise _ERRORS.get(answer["kind"], OSError)(answer["error"])
        return answer["value"]

    def suspend(self) -> None:
        """Stop the process with SIGSTOP, until `go_on` is called."""
        self._process.send_signal(signal.SIGSTOP)
        if sys.platform != "darwin":
            # The signal has been sent, but a thread on another processor may still be running.
            with suppress(ChildProcessError):  # the process has ended
                os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process, as with `kill -9`, without flushing data or notifying clients."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        """End the process by closing its pipe. If this takes too long, kill the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _line(self, method: str) -> bytes:
        """Read the next line from the process. Raises TimeoutError or OSError."""
        assert self._process.stdout is not None
        clock = SystemClock()
        deadline_ms = clock.monotonic_ms() + self._patience_s * 1000
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                left_s = (deadline_ms - clock.monotonic_ms()) / 1000
                # A plain read would block if the child hung.
                if left_s <= 0 or not selector.select(left_s):
                    raise TimeoutError(
                        f"the broker's process {self.pid} did not {method} within "
                        f"{self._patience_s:g} s"
                    )
                data = os.read(self._process.stdout.fileno(), _READ_BYTES)
                # The output has ended, because the process ended or was killed.
                if not data:
                    raise self._has_ended()
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _has_ended(self) -> OSError:
        code = self._process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return OSError(f"the broker's process {self.pid} has ended {how}")
