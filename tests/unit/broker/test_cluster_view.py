"""What a broker knows of its cluster, and the waiting for it."""

from __future__ import annotations

import asyncio

from barnabas.broker.cluster_view import ClusterView
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage
from barnabas.types import TopicPartition

ENDPOINT = Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT")


def image_of(*brokers: int, **topics: int) -> ClusterImage:
    """With these brokers, whose epochs are their ids + 100, and topics of so many partitions."""
    return ClusterImage.empty()._replace(
        brokers={each: BrokerImage(each, (ENDPOINT,), None, each + 100) for each in brokers},
        topics={
            name: TopicImage(
                name, bytes(16), {n: PartitionImage.never_led((0,)) for n in range(count)}, {}
            )
            for name, count in topics.items()
        },
    )


def test_a_partition_is_known_once_the_image_has_it() -> None:
    view = ClusterView(0)
    assert not view.is_known(TopicPartition("t", 0))
    view.update(image_of(0, t=2))
    assert view.is_known(TopicPartition("t", 1))
    assert not view.is_known(TopicPartition("t", 2))
    assert view.live_brokers() == {0: 100}


def test_a_broker_that_is_alone_has_all_metadata_from_the_start() -> None:
    assert ClusterView(0).has_metadata
    view = ClusterView(0, has_peers=True)
    assert not view.has_metadata
    view.update(image_of(1, 2))
    assert not view.has_metadata, "of another registration, or of none"
    view.update(image_of(0, 1))
    assert view.has_metadata


def test_who_waits_goes_on_with_the_update_that_makes_it_hold() -> None:
    async def scenario() -> None:
        view = ClusterView(0, has_peers=True)
        two = asyncio.ensure_future(view.until(lambda image: len(image.brokers) == 2))
        gone = asyncio.ensure_future(view.until(lambda image: len(image.brokers) == 2))
        metadata = asyncio.ensure_future(view.until_metadata())
        await asyncio.sleep(0)
        gone.cancel()
        view.update(image_of(1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not two.done() and not metadata.done()
        view.update(image_of(0, 1))
        async with asyncio.timeout(60):
            await two
            await metadata

    asyncio.run(scenario())


def test_the_first_registration_is_waited_for_and_the_last_one_counts() -> None:
    async def scenario() -> None:
        view = ClusterView(0)
        waiting = asyncio.ensure_future(view.until_registered())
        await asyncio.sleep(0)
        assert not waiting.done() and view.broker_epoch == -1
        view.on_registered(7)
        async with asyncio.timeout(60):
            await waiting
        view.on_registered(9)
        await view.until_registered()
        assert view.broker_epoch == 9

    asyncio.run(scenario())
