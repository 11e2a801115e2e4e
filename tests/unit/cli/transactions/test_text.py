"""The tables of `transactions`, as Kafka 3.9's own tool prints them, and what hangs."""

from __future__ import annotations

from barnabas.cli.transactions.hanging import OpenTransaction, hanging, suspects
from barnabas.cli.transactions.text import (
    description_text,
    description_values,
    hanging_text,
    hanging_values,
    listing_text,
    producers_text,
)
from barnabas.client.admin.transaction_admin import (
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.channel import BrokerAddress
from barnabas.types import TopicPartition

TXT = [TopicPartition("txt", 0), TopicPartition("txt", 1)]
BEGAN_MS = 1_795_281_496_985
OPEN = TransactionDescription(
    "tx-open", "Ongoing", 0, 0, 60_000, BEGAN_MS, tuple(TXT), BrokerAddress(0, "localhost", 9092)
)
EMPTY = OPEN._replace(
    transactional_id="tx-empty", state="Empty", producer_id=2, started_at_ms=-1, partitions=()
)
WRITING = ProducerState(0, 0, 0, 1_795_281_496_964, -1, 0)
DONE = ProducerState(1, 0, 0, 1_795_281_497_278, 0, -1)


def test_the_list_is_kafkas_table() -> None:
    """As the real tool printed it, tabs and paddings included."""
    listings = [
        TransactionListing("tx-empty", 2, "Empty", 0),
        TransactionListing("tx-done", 1, "CompleteCommit", 0),
        TransactionListing("tx-open", 0, "Ongoing", 0),
    ]
    assert listing_text(listings) == (
        "TransactionalId\tCoordinator\tProducerId\tTransactionState\t\n"
        "tx-empty       \t0          \t2         \tEmpty           \t\n"
        "tx-done        \t0          \t1         \tCompleteCommit  \t\n"
        "tx-open        \t0          \t0         \tOngoing         \t\n"
    )
    assert listing_text([]) == "TransactionalId\tCoordinator\tProducerId\tTransactionState\t\n"


def test_descriptions_are_kafkas_table() -> None:
    assert description_text([OPEN], BEGAN_MS + 5_851) == (
        "CoordinatorId\tTransactionalId\tProducerId\tProducerEpoch\tTransactionState\t"
        "TransactionTimeoutMs\tCurrentTransactionStartTimeMs\tTransactionDurationMs\t"
        "TopicPartitions\t\n"
        "0            \ttx-open        \t0         \t0            \tOngoing         \t"
        "60000               \t1795281496985                \t5851                 \t"
        "txt-0,txt-1    \t\n"
    )
    assert description_text([EMPTY], BEGAN_MS).splitlines()[1] == (
        "0            \ttx-empty       \t2         \t0            \tEmpty           \t"
        "60000               \tNone                         \tNone                 \t"
        "               \t"
    )
    values = description_values([OPEN, EMPTY], BEGAN_MS + 1)
    assert values[0]["started_at"] == "2026-11-21T17:18:16.985Z"
    assert values[0]["partitions"][1] == {"topic": "txt", "partition": 1}
    assert (values[0]["duration_ms"], values[1]["duration_ms"]) == (1, None)


def test_producers_are_kafkas_table() -> None:
    assert producers_text([WRITING, DONE]) == (
        "ProducerId\tProducerEpoch\tLatestCoordinatorEpoch\tLastSequence\tLastTimestamp\t"
        "CurrentTransactionStartOffset\t\n"
        "0         \t0            \t-1                    \t0           \t1795281496964\t"
        "0                            \t\n"
        "1         \t0            \t0                     \t0           \t1795281497278\t"
        "None                         \t\n"
    )


def test_only_what_is_open_and_silent_is_suspected() -> None:
    long_done = DONE._replace(last_timestamp_ms=0)
    producers = {TXT[0]: [WRITING, long_done], TXT[1]: [long_done]}
    since_ms = WRITING.last_timestamp_ms
    assert suspects(producers, since_ms) == []
    assert suspects(producers, since_ms + 1) == [OpenTransaction(TXT[0], WRITING)]


def test_what_no_coordinator_will_end_hangs() -> None:
    """KIP-664: the coordinator does not know the partition, or the producer, or that it is open."""
    candidate = OpenTransaction(TXT[0], WRITING)
    assert hanging([candidate], [OPEN]) == []
    assert hanging([candidate], []) == [candidate]
    assert hanging([candidate], [OPEN._replace(partitions=(TXT[1],))]) == [candidate]
    assert hanging([candidate], [OPEN._replace(producer_id=7)]) == [candidate]
    assert hanging([candidate], [EMPTY._replace(producer_id=0)]) == [candidate]
    now_ms = WRITING.last_timestamp_ms + 16 * 60_000
    assert hanging_text([candidate], now_ms) == (
        "Topic\tPartition\tProducerId\tProducerEpoch\tCoordinatorEpoch\tStartOffset\t"
        "LastTimestamp\tDuration(min)\t\n"
        "txt  \t0        \t0         \t0            \t-1              \t0          \t"
        "1795281496964\t16           \t\n"
    )
    assert hanging_values([candidate])[0]["transaction_start_offset"] == 0
