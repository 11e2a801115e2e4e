"""What the controller machine takes for a broker that fails, for one that comes, for an office.

    python -m benchmarks.controller [--partitions N]

No network and no store: from the event to the decision. Three brokers, replication factor 3, so
every partition loses a replica, and a third of them its leader. Leader epochs are spread over fifty
values, as after months of life. Beside it, in which pieces the decision would be committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from barnabas.cluster.controller_requests import IsrMember, IsrProposal
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from barnabas.controller.controller import Controller, Decision
from barnabas.controller.decision import split
from barnabas.types import TopicPartition
from benchmarks.figures import Figure, parser_of, show

PARTITIONS = 10_000
_PER_TOPIC = 100
_EPOCHS = 50
_GOAL_MS = 50.0
_TIMES = 7
_ADDRESS = (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),)


def measure(partitions: int = PARTITIONS) -> list[Figure]:
    """Processor time, the best of several runs: what else the machine does is no part of it."""
    controller = Controller(1, _image(partitions))
    live = dict(controller.image.brokers)
    two = {broker_id: live[broker_id] for broker_id in (2, 3)}
    fails, decision = _best(lambda: controller.brokers_changed(two))
    assert len(decision.operations) == partitions + 1
    pieces = len(split(decision.operations))
    after = Controller(1, decision.image)
    comes, _ = _best(lambda: after.brokers_changed({**two, 1: live[1]._replace(epoch=9)}))
    elected, _ = _best(lambda: controller.on_elected([]))
    proposes, _ = _best(lambda: after.isr_proposed(2, 2, [_proposal(after)])[0])
    what = f"{partitions} partitions"
    return [
        Figure(f"one broker of three fails, {what}", "ms", fails, _GOAL_MS),
        Figure("in how many commits of at most 500 kB", "commits", pieces),
        Figure(f"it comes back, {what}", "ms", comes),
        Figure(f"a new controller takes office, {what}", "ms", elected),
        Figure(f"one ISR is proposed, of {what}", "ms", proposes),
    ]


def _best(decide: Callable[[], Decision]) -> tuple[float, Decision]:
    best, decision = float("inf"), decide()
    for _ in range(_TIMES):
        begun = time.process_time()
        decision = decide()
        best = min(best, 1000 * (time.process_time() - begun))
    return best, decision


def _image(partitions: int) -> ClusterImage:
    brokers = {each: BrokerImage(each, _ADDRESS, None, each) for each in (1, 2, 3)}
    topics = {}
    for first in range(0, partitions, _PER_TOPIC):
        name = f"topic-{first // _PER_TOPIC}"
        numbers = range(min(_PER_TOPIC, partitions - first))
        topics[name] = TopicImage(
            name, name.encode().ljust(16, b"\0"), {n: _partition(first + n) for n in numbers}, {}
        )
    names = {topic.topic_id: topic.name for topic in topics.values()}
    return ClusterImage("cluster", 3, 5, brokers, topics, names)


def _partition(number: int) -> PartitionImage:
    replicas = tuple((number + step) % 3 + 1 for step in range(3))
    epoch = number * 7 % _EPOCHS
    return PartitionImage(replicas[0], epoch, replicas, replicas, epoch + 3, 4)


def _proposal(controller: Controller) -> IsrProposal:
    topic = controller.image.topics["topic-0"]
    number, partition = next((n, p) for n, p in topic.partitions.items() if p.leader == 2)
    isr = (IsrMember(2, 2),)
    return IsrProposal(
        TopicPartition("topic-0", number),
        topic.topic_id,
        partition.leader_epoch,
        isr,
        partition.partition_epoch,
    )


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    show("the controller machine alone", measure(options.partitions), options.json)


if __name__ == "__main__":
    main()
