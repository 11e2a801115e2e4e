"""A test of an application in FastStream, with a broker behind it instead of a stand-in.

pip install '.[test]' 'faststream[confluent]'
pytest examples/testing_faststream.py
"""

from __future__ import annotations

import asyncio

from faststream import FastStream
from faststream.confluent import KafkaBroker

from barnabas.testing import Broker


def application(servers: str) -> FastStream:
    """The service to be tested: it answers each order with a receipt."""
    broker = KafkaBroker(servers)

    @broker.subscriber("orders", group_id="receipts", auto_offset_reset="earliest")
    @broker.publisher("receipts")
    async def receipt(order: str) -> str:
        return f"a receipt for {order}"

    return FastStream(broker)


def test_each_order_gets_a_receipt(barnabas_broker: Broker) -> None:
    orders, receipts = barnabas_broker.topic("orders"), barnabas_broker.topic("receipts")

    async def scene() -> None:
        service = application(barnabas_broker.bootstrap_servers)
        running = asyncio.create_task(service.run())
        orders.send_many(["tea", "bread"])
        await asyncio.to_thread(receipts.wait_for_records, 2)
        service.exit()
        await running

    asyncio.run(scene())
    assert receipts.values() == [b"a receipt for tea", b"a receipt for bread"]
    assert barnabas_broker.group("receipts").lag() == 0
