"""Connects a test to the faults of a broker in another process, over HTTP (`control`).

The faults are sent to each process that starts, and the counts of the rules are summed over all
processes.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from barnabas.errors import ConfigError
from barnabas.testing.faults.machine_faults import ClockFault, DiskFault
from barnabas.testing.faults.rule import Rule, Tally

_HOST: Final = "127.0.0.1"
_PATIENCE_S: Final = 20.0
_LONGEST_LOOK_S: Final = 5.0
_REST_S: Final = 0.02

MachineFault = DiskFault | ClockFault


class FaultLink:
    """Sets and reads faults in another process. `port` returns the port of the current process, or
    None if there is none; it may raise ConfigError if the port cannot be found. All methods may be
    called in any thread.
    """

    def __init__(self, port: Callable[[], int | None]) -> None:
        self._port_of_process = port
        self._lock = threading.RLock()
        self._life = 0
        self._ids: dict[Rule, int] = {}  # the ids of rules in the current process
        self._former: dict[Rule, Tally] = {}  # counts in processes that have ended
        self._spoilt: dict[tuple[str, int | None], MachineFault] = {}

    # ---- start and end of a process ----

    def begin(self, rules: Sequence[Rule], machine: Mapping[str, Mapping[Any, Any]]) -> None:
        """Set the faults in a process that has just begun to serve."""
        with self._lock:
            self._forget()
            self.bring(rules, machine)

    def end(self, rules: Sequence[Rule]) -> None:
        """Save the counts of a process that is about to end."""
        with self._lock:
            for rule in rules:
                self.look(rule)
                self._former[rule] = rule.tally
            self._forget()

    def _forget(self) -> None:
        self._life += 1
        self._ids.clear()
        self._spoilt.clear()

    # ---- setting faults ----

    def bring(self, rules: Sequence[Rule], machine: Mapping[str, Mapping[Any, Any]]) -> None:
        """Set exactly these faults in the process; do nothing if there is no process.

        Raises OSError, or ConfigError if a fault is rejected.
        """
        # This is called without the lock, because it may wait for the holder of the lock.
        port = self._port_of_process()
        if port is None:
            return
        with self._lock:
            self._bring_rules(port, rules)
            self._bring_machine(port, machine)

    def _bring_rules(self, port: int, rules: Sequence[Rule]) -> None:
        for rule in self._ids.keys() - set(rules):
            self._count(rule, _ask(port, "DELETE", f"/faults/{self._ids[rule]}"))
            del self._ids[rule]
            self._former.pop(rule, None)
        for rule in rules:
            # Do not send a spent rule, which would start counting again in a new process.
            if rule not in self._ids and not rule.is_spent:
                self._ids[rule] = _ask(port, "POST", "/faults", self._arguments(rule))["id"]

    def _bring_machine(self, port: int, machine: Mapping[str, Mapping[Any, Any]]) -> None:
        wanted: dict[tuple[str, int | None], MachineFault] = {
            (what, broker): fault
            for what, faults in machine.items()
            for broker, fault in faults.items()
        }
        for what, broker in [key for key in self._spoilt if key not in wanted]:
            query = "" if broker is None else f"?broker={broker}"
            _ask(port, "DELETE", f"/{what}{query}")
            del self._spoilt[what, broker]
        for (what, broker), fault in wanted.items():
            if self._spoilt.get((what, broker)) is not fault:
                _ask(port, "POST", f"/{what}", {**fault.arguments(), "broker": broker})
                self._spoilt[what, broker] = fault

    def _arguments(self, rule: Rule) -> dict[str, Any]:
        former = self._former.get(rule, Tally())
        # Requests that passed or were hit in earlier processes count towards the limits.
        arguments: dict[str, Any] = {**rule.arguments(), "after": rule.after - former.passed}
        if rule.count is not None:
            arguments["count"] = rule.count - former.hits
        return arguments

    # ---- counts ----

    def look(self, rule: Rule, hits: int = 0, within_s: float = 0.0) -> None:
        """Wait until the rule has been hit this often or time is up, and then update the rule's
        counts.
        """
        with self._lock:
            life, rule_id = self._life, self._ids.get(rule)
            former = self._former.get(rule, Tally())
        wait_ms = round(min(within_s, _LONGEST_LOOK_S) * 1000)
        query = f"?hits={max(0, hits - former.hits)}&timeout_ms={wait_ms}"
        try:
            port = self._port_of_process()
            seen = {}
            if port is not None and rule_id is not None:
                seen = _exchange(port, "GET", f"/faults/{rule_id}{query}")[1]
        except (ConfigError, OSError):  # the process is paused or has ended
            seen = {}
        if not seen:
            time.sleep(min(within_s, _REST_S))
        with self._lock:
            # The process that responded may have been replaced in the meantime.
            if life == self._life and rule in self._ids:
                self._count(rule, seen)

    def _count(self, rule: Rule, seen: Mapping[str, Any]) -> None:
        if "hits" in seen:
            former = self._former.get(rule, Tally())
            rule.take_over(Tally(former.hits + seen["hits"], former.passed + seen["passed"]))


def _ask(
    port: int, method: str, path: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Send a request, and return the response. Raises OSError, or ConfigError if the request is
    rejected.
    """
    status, answer = _exchange(port, method, path, body)
    # A rule that no longer exists in the process counts as deleted.
    if status >= 400 and (method, status) != ("DELETE", 404):
        raise ConfigError(answer["error"])
    return answer


def _exchange(
    port: int, method: str, path: str, body: Mapping[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    """Return the status and the response. Raises OSError."""
    connection = http.client.HTTPConnection(_HOST, port, timeout=_PATIENCE_S)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (http.client.HTTPException, ValueError) as error:
        raise ConnectionError(f"no complete response from the broker's process: {error}") from None
    finally:
        connection.close()
