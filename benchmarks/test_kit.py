"""How long a test with a broker takes, from the fixture to the first record of a group (TK-6).

    python -m benchmarks.test_kit [--json FILE] [--tests N]

A broker, a topic, a producer and a consumer in a group, as the fixtures of `barnabas.testing` make
them, in this process. The first test also loads all modules; it has a row of its own, and is no
part of the medians. The end is what the test waits for after its last line.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack

import barnabas
from benchmarks.figures import Figure, parser_of, show

COMMAND = "python -m benchmarks.test_kit"
BROKER, TO_RECORD, END = "broker", "from the fixture to the record", "end of the test"
PARTS = (BROKER, "topic", "producer", "record sent", "consumer", "record received")
GOALS_MS = {BROKER: 40.0, TO_RECORD: 150.0}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--tests", type=int, default=30, help="how many (30)")
    options = parser.parse_args()
    show("A test with a broker", measured(options.tests), options.json)


def measured(tests: int) -> list[Figure]:
    cold = one_test()
    warm = [one_test() for _ in range(tests)]
    figures = [
        Figure(part, "ms", statistics.median(each[part] for each in warm), GOALS_MS.get(part))
        for part in cold
    ]
    worst = max(each[TO_RECORD] for each in warm)
    return [
        *(figure._replace(command=COMMAND) for figure in figures),
        Figure(f"{TO_RECORD}, the slowest", "ms", worst, command=COMMAND),
        Figure(f"{TO_RECORD}, the first of all", "ms", cold[TO_RECORD], command=COMMAND),
    ]


def one_test() -> dict[str, float]:
    """The milliseconds of each part, of all of them, and of the end."""
    at_s = [time.perf_counter()]
    with ExitStack() as opened:
        broker = opened.enter_context(barnabas.Broker())
        at_s.append(time.perf_counter())
        topic = broker.topic("orders")
        at_s.append(time.perf_counter())
        producer = opened.enter_context(broker.producer())
        at_s.append(time.perf_counter())
        producer.send("orders", b"one").result()
        at_s.append(time.perf_counter())
        consumer = opened.enter_context(broker.consumer(topic.name, group_id="billing"))
        at_s.append(time.perf_counter())
        while not consumer.poll(1000):
            pass
        at_s.append(time.perf_counter())
    ended_s = time.perf_counter()
    laps = zip(PARTS, at_s, at_s[1:], strict=False)
    took = {part: (after_s - before_s) * 1000 for part, before_s, after_s in laps}
    took[TO_RECORD] = (at_s[-1] - at_s[0]) * 1000
    took[END] = (ended_s - at_s[-1]) * 1000
    return took


if __name__ == "__main__":
    main()
