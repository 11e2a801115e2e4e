"""A foreign producer's commit, which outlives the broker."""

from __future__ import annotations

import queue
import threading

from confluent_kafka import KafkaException, Producer

DEADLINE_S = 90.0


def commit(producer: Producer) -> bool:
    """Whether it was committed; a commit of unknown outcome is asked for again."""
    for _ in range(5):
        try:
            producer.commit_transaction(DEADLINE_S)
        except KafkaException as error:
            if error.args[0].retriable():
                continue
            assert error.args[0].txn_requires_abort(), error
            producer.abort_transaction(DEADLINE_S)
            return False
        return True
    raise AssertionError("the transaction was neither committed nor refused")


class Committing:
    """A commit under way, in a thread: it outlives the broker."""

    def __init__(self, producer: Producer) -> None:
        self._done: queue.Queue[bool | Exception] = queue.Queue()
        threading.Thread(target=self._run, args=(producer,), daemon=True).start()

    def _run(self, producer: Producer) -> None:
        try:
            self._done.put(commit(producer))
        except Exception as error:
            self._done.put(error)

    def outcome(self) -> bool:
        outcome = self._done.get(timeout=2 * DEADLINE_S)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
