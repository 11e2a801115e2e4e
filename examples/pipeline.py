"""An asyncio pipeline that writes exactly once: orders in, invoices out, in transactions.

pip install .
python examples/pipeline.py                             on a broker of its own, and dies once
python examples/pipeline.py --servers localhost:9092    until Ctrl-C or SIGTERM

Each transaction has the invoices of some orders, and the offset up to which these were read. So a
pipeline that ends at any point, and is started again, neither loses an order nor bills it twice.
It needs no more error handling than that: whatever is wrong ends it, and a supervisor starts it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections.abc import Sequence

import barnabas
from barnabas.client import Consumer, ConsumerRecord, Producer

ORDERS, INVOICES, REJECTED = "orders", "invoices", "orders-rejected"
GROUP = "billing"


async def run(servers: str, stop: asyncio.Event, dies_at: str = "") -> None:
    """Bill orders until `stop` is set."""
    async with (
        Consumer(
            servers,
            group_id=GROUP,
            enable_auto_commit=False,  # the transactions commit the offsets
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer,
        # The same id after each restart: it ends what its predecessor has left open.
        Producer(servers, transactional_id=f"{GROUP}-1") as producer,
    ):
        consumer.subscribe([ORDERS])
        while not stop.is_set():
            orders = await consumer.poll(timeout_ms=200)
            if orders:
                await bill(orders, consumer, producer, dies_at)


async def bill(
    orders: Sequence[ConsumerRecord], consumer: Consumer, producer: Producer, dies_at: str
) -> None:
    """Write the invoices of these orders, and commit their offsets, or neither."""
    async with producer.transaction():
        for order in orders:
            try:
                await producer.send(INVOICES, invoice(order.value or b""), key=order.key)
            except ValueError as error:  # one bad order must not stop all others
                headers = {"reason": str(error)}
                await producer.send(REJECTED, order.value, key=order.key, headers=headers)
            if dies_at and order.key == dies_at.encode():
                raise RuntimeError("killed")
        await producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())


def invoice(order: bytes) -> bytes:
    """Raises ValueError for what is no order."""
    fields = json.loads(order)
    try:
        return json.dumps({"item": fields["item"], "cents": fields["count"] * 250}).encode()
    except (KeyError, TypeError) as error:
        raise ValueError(f"not an order: {error!r}") from error


async def serve(servers: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(servers, stop)


async def demonstrate(broker: barnabas.Broker) -> None:
    """Twelve orders, one of which is none; the pipeline dies at the seventh and starts again."""
    for number in range(12):
        order = {"item": f"book {number}", "count": number} if number != 3 else "no order"
        broker.topic(ORDERS).send(json.dumps(order), key=str(number))
    stop = asyncio.Event()
    try:
        await run(broker.bootstrap_servers, stop, dies_at="7")
    except RuntimeError as error:
        print(f"the first run was {error} at order 7")
    again = asyncio.create_task(run(broker.bootstrap_servers, stop))
    invoices = broker.topic(INVOICES)
    try:
        await asyncio.to_thread(
            invoices.wait_for_records, 11, isolation_level="read_committed", timeout_s=30
        )
    finally:
        stop.set()
        await again
    keys = [int(record.key or b"") for record in invoices.records(isolation_level="read_committed")]
    print("billed, each once:", sorted(keys))
    rejected = broker.topic(REJECTED).records(isolation_level="read_committed")
    print("rejected:", [record.key for record in rejected])


def main() -> None:
    parser = argparse.ArgumentParser(description="Bills orders exactly once.")
    parser.add_argument("--servers", help="HOST:PORT,... of a running cluster")
    given = parser.parse_args()
    if given.servers:
        asyncio.run(serve(given.servers))
    else:
        with barnabas.Broker() as broker:
            asyncio.run(demonstrate(broker))


if __name__ == "__main__":
    main()
