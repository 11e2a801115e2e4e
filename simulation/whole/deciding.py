"""Ends a transaction as a careful user does: commits again, aborts, or gives up.

Only what is certain is recorded: once a commit has been requested, the transaction is `UNKNOWN`
until the coordinator reports its outcome.
"""

from __future__ import annotations

import asyncio
from random import Random

from barnabas.client import Producer
from barnabas.client.errors import Unreachable
from barnabas.errors import BarnabasError, InvalidTxnState, KafkaError
from simulation.whole.environment import Environment
from simulation.whole.history import FAIL, OK, UNKNOWN, Transaction

_TRIES = 2  # attempts to commit before testing whether aborting is still allowed
_MOST_TRIES = 12


async def commit(
    around: Environment, producer: Producer, transaction: Transaction, random: Random
) -> bool:
    """Commit; returns whether the producer can go on."""
    around.history.ends_with(transaction, UNKNOWN, "(commit is asked for)")
    for attempt in range(_MOST_TRIES):
        try:
            await producer.commit_transaction()
        except (Unreachable, KafkaError) as error:
            passes = isinstance(error, Unreachable) or error.retriable
            if passes and attempt % (_TRIES + 1) < _TRIES:
                await around.rest(random, 500)
                continue
            if await _is_aborted(around, producer, transaction):
                return True
            if not passes:
                return False
        except BarnabasError:  # one of its records has failed permanently
            return await _is_aborted(around, producer, transaction)
        else:
            around.history.ends_with(transaction, OK)
            return True
    return False


async def abort(around: Environment, producer: Producer, transaction: Transaction) -> bool:
    """Abort; returns whether the producer can go on.

    No commit was requested, so the transaction has failed in any case.
    """
    is_over = await _is_aborted(around, producer, transaction)
    if not is_over:
        around.history.ends_with(transaction, FAIL, "(or will be, by another)")
    return is_over


async def _is_aborted(around: Environment, producer: Producer, transaction: Transaction) -> bool:
    """Abort; the client refuses that if a commit may already have been decided."""
    for _ in range(_TRIES):
        try:
            await producer.abort_transaction()
        except InvalidTxnState:
            return False
        except (Unreachable, KafkaError) as error:
            if isinstance(error, KafkaError) and not error.retriable:
                return False
            await asyncio.sleep(0.1)
        else:
            around.history.ends_with(transaction, FAIL)
            return True
    return False
