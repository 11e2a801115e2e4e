"""The process of `Broker(process=True)`: makes a broker, and does what its parent asks.

    stdin:  ["make", "Broker", {...}, parent's process id], then ["start"], ["stop"], ...
    stdout: {"value": ...} or {"error": text, "kind": class}, a line for a line

It ends when the input does, or the parent is gone.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import IO, Any, Final

from barnabas.broker.embedded.broker import Broker
from barnabas.broker.embedded.cluster import Cluster
from barnabas.errors import BarnabasError

_LOOKS_PER_S: Final = 2
_KINDS: Final = {"Broker": Broker, "Cluster": Cluster}


def main() -> int:
    answers, sys.stdout = sys.stdout, sys.stderr  # so that nothing gets between the answers
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends this
    signal.signal(signal.SIGTERM, _leave)
    made: list[Broker | Cluster] = []
    try:
        for line in sys.stdin:
            _answer(made, json.loads(line), answers)
    finally:
        for each in made:
            each.close()
    return 0


def _answer(made: list[Broker | Cluster], call: list[Any], answers: IO[str]) -> None:
    answer: dict[str, Any]
    try:
        answer = {"value": _called(made, call)}
    except (BarnabasError, OSError) as error:
        answer = {"error": str(error), "kind": type(error).__name__}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _called(made: list[Broker | Cluster], call: list[Any]) -> Any:
    method, *arguments = call
    if method == "make":
        kind, options, parent = arguments
        watch = threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True)
        watch.start()
        if own := options.get("broker_config"):
            options["broker_config"] = {int(broker_id): own[broker_id] for broker_id in own}
        made.append(_KINDS[kind](**options))
        return None
    return made[0].answer(method, *arguments)


def _watch(parent: int) -> None:
    """Leave when the parent is gone: another of its children may hold the pipe open."""
    while os.getppid() == parent:
        threading.Event().wait(1 / _LOOKS_PER_S)
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
