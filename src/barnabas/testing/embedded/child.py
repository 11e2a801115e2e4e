"""Runs in a `Broker(process=True)` process: creates a broker and executes the parent's calls.

    stdin:  ["make", "Broker", {...}, parent's process id], then ["start"], ["stop"], ...
            ["control"]: accept faults over HTTP, on the port in the response ["faults.heal", 2]: a
            method of `faults`
    stdout: {"value": ...} or {"error": text, "kind": class}, one line for each call

The process ends when its input ends or its parent has exited.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, Final

from barnabas.client.loop_thread import LoopThread
from barnabas.errors import BarnabasError
from barnabas.testing.embedded.broker import Broker
from barnabas.testing.embedded.cluster import Cluster

_LOOKS_PER_S: Final = 2
_KINDS: Final = {"Broker": Broker, "Cluster": Cluster}


class _Calls:
    """Executes calls to the broker or cluster that runs in this process."""

    def __init__(self) -> None:
        self.made: Broker | Cluster | None = None
        self._control_port: int | None = None

    def answer(self, call: list[Any]) -> dict[str, Any]:
        try:
            return {"value": self._call(*call)}
        # The constructor and the methods may raise these errors. Any other exception is a bug, and
        # ends the process with a traceback.
        except (BarnabasError, OSError) as error:
            return {"error": str(error), "kind": type(error).__name__}

    def _call(self, method: str, *arguments: Any) -> Any:
        if method == "make":
            self._make(*arguments)
            return None
        assert self.made is not None
        if method == "control":
            return self._control(self.made)
        if method.startswith("faults."):
            getattr(self.made.faults, method.removeprefix("faults."))(*arguments)
            return None
        return self.made.answer(method, *arguments)

    def _make(self, kind: str, options: dict[str, Any], parent: int) -> None:
        watch = threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True)
        watch.start()
        if own := options.get("broker_config"):
            # JSON keys are always strings.
            options["broker_config"] = {int(broker_id): own[broker_id] for broker_id in own}
        self.made = _KINDS[kind](**options)

    def _control(self, made: Broker | Cluster) -> int:
        """Return the port of the HTTP server for faults. The first call starts the server, which
        runs on its own loop so that it can respond even while a broker is paused.
        """
        # The server runs until the process ends, even if brokers stop and start.
        if self._control_port is None:
            # The module is loaded on first use, because most processes never need faults.
            from barnabas.testing.faults.control import FaultControl

            control = FaultControl(0)
            thread = LoopThread("barnabas-control")
            self._control_port = thread.run(control.serve(made.faults))
        return self._control_port


def main() -> int:
    answers, sys.stdout = sys.stdout, sys.stderr  # keeps other output separate from responses
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, _leave)
    calls = _Calls()
    try:
        for line in sys.stdin:
            answers.write(json.dumps(calls.answer(json.loads(line))) + "\n")
            answers.flush()
    finally:
        if calls.made is not None:
            calls.made.close()
    return 0


def _watch(parent: int) -> None:
    """Exit once the parent has exited. The pipe alone is not enough, because another child of the
    parent may keep it open.
    """
    # An orphaned process has a new parent; detect this within half a second.
    while os.getppid() == parent:
        threading.Event().wait(1 / _LOOKS_PER_S)
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
