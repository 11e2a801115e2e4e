"""A broker inside a program: no server to install, nothing left behind.

pip install .
python examples/embedded_broker.py
"""

from __future__ import annotations

import barnabas
from barnabas.client import SyncConsumer, SyncProducer
from barnabas.types import TopicPartition

GREETINGS = {b"anna": b"hello", b"bea": b"bonjour", b"carla": b"ciao"}


def main() -> None:
    with barnabas.Broker() as broker:
        with SyncProducer(broker.bootstrap_servers) as producer:
            for name, greeting in GREETINGS.items():
                producer.send("greetings", greeting, key=name)

        partition = TopicPartition("greetings", 0)
        with SyncConsumer(broker.bootstrap_servers) as consumer:
            consumer.assign([partition])
            consumer.seek_to_beginning(partition)
            missing = len(GREETINGS)
            while missing:
                records = consumer.poll(timeout_ms=10_000)
                missing -= len(records)
                for record in records:
                    print(record.offset, record.key, record.value)


if __name__ == "__main__":
    main()
