"""Does an application's retry logic work? A broker that fails as told, and confluent-kafka.

pip install .[test] confluent-kafka
python examples/testing_faults.py
"""

from __future__ import annotations

from confluent_kafka import Producer

import barnabas


class OrderService:
    """The application: it reports an order as placed once the broker has acknowledged it."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.placed: list[str] = []
        self.failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "retry.backoff.ms": 10,
                "log_level": 0,
            }
        )

    def place(self, order: str) -> None:
        def reported(error: object, _message: object) -> None:
            (self.placed if error is None else self.failed).append(order)

        self._producer.produce("orders", order.encode(), on_delivery=reported)
        self._producer.flush(10)


def main() -> None:
    with barnabas.Broker() as broker:
        orders = broker.topic("orders")
        service = OrderService(broker.bootstrap_servers)

        # The leader has moved, three times in a row.
        with broker.faults.add(
            api="Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER", count=3
        ) as rule:
            service.place("tea")
            assert rule.hits == 3
        print("refused three times, placed:", service.placed)

        # The broker has the order, and its answer is lost: the repetition must not count twice.
        with broker.faults.add(api="Produce", topic="orders", drop=True, count=1) as rule:
            service.place("coffee")
            assert rule.hits == 1
        print("answer lost once, placed:", service.placed)

        assert service.failed == []
        assert orders.values() == [b"tea", b"coffee"]
        print("in the topic, each once:", [value.decode() for value in orders.values() if value])


if __name__ == "__main__":
    main()
