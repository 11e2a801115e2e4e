"""UpdateMetadata as it travels: what the receiver's image is afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.inter_broker.update_metadata_wire import (
    update_metadata_request,
    update_metadata_topics,
    update_metadata_value,
)
from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)
from barnabas.errors import InvalidRequest, UnsupportedVersion
from barnabas.protocol.api import UPDATE_METADATA
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.kit.broker.recordings import recorded, travelled

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))
LED = PartitionImage(1, 5, (1, 2), (1, 2, 3), 9, 4)
BROKERS = (
    BrokerImage(
        1,
        (Endpoint("IN", "h1", 9001, "SASL_SSL"), Endpoint("OUT", "h2", 9002, "PLAINTEXT")),
        "r1",
        -1,
    ),
    BrokerImage(2, (Endpoint("IN", "h3", 9003, "SSL"),), None, -1),
)
NOTHING = ClusterImage.empty()._replace(cluster_id="c")


def image(*topics: TopicImage) -> ClusterImage:
    return NOTHING.apply(UpdateMetadata(8, 9, "c", BROKERS, topics))


def received(
    value: UpdateMetadata, before: ClusterImage, known: ClusterImage = NOTHING
) -> UpdateMetadata:
    """The value as the receiver has it, whose image is `before`; `known`: the controller's."""
    message, version = update_metadata_request(value, 77, known.topics)
    assert version == UPDATE_METADATA.max_version
    message = travelled(message, version)
    assert message.broker_epoch == 77
    configs = {name: {"of": name} for name in update_metadata_topics(message)}
    return update_metadata_value(message, version, before, configs)


def test_update_metadata_arrives_as_it_was_meant() -> None:
    """Broker 3 is dead: its replicas are offline for Kafka's brokers, and no news for ours."""
    partitions = {0: LED._replace(offline_replicas=(2,)), 1: LED._replace(leader=-1), 2: LED}
    value = UpdateMetadata(
        8, 9, "c", BROKERS, (TopicImage("t", ID, partitions, {"of": "t"}),), ("gone",)
    )
    assert received(value, NOTHING) == value
    message, _ = update_metadata_request(value, 77, {})
    states = {each.topic_name: each.partition_states for each in message.topic_states}
    assert [each.offline_replicas for each in states["t"]] == [[2, 3], [3], [3]]


def test_brokers_alone_are_news_too() -> None:
    value = UpdateMetadata(8, 9, "c", BROKERS[:1])
    assert received(value, image(TopicImage("t", ID, {0: LED}, {}))) == value


def test_epochs_of_brokers_are_not_sent() -> None:
    value = UpdateMetadata(8, 9, "c", (BROKERS[0]._replace(epoch=98),))
    assert received(value, NOTHING).brokers == BROKERS[:1]


def test_a_removed_topic_is_sent_as_all_of_its_partitions() -> None:
    """Kafka's brokers forget partitions one by one."""
    known = image(TopicImage("t", ID, {0: LED, 1: LED}, {}))
    value = UpdateMetadata(8, 9, "c", BROKERS, (), ("t", "forgotten"))
    message, _ = update_metadata_request(value, 77, known.topics)
    assert [
        (topic.topic_name, topic.topic_id, each.partition_index, each.leader)
        for topic in message.topic_states
        for each in topic.partition_states
    ] == [("t", ID, 0, -2), ("t", ID, 1, -2), ("forgotten", bytes(16), 0, -2)]
    assert received(value, known, known) == value
    assert known.apply(received(value, known, known)).topics == {}


def test_a_topic_may_come_back_under_its_name() -> None:
    before = image(TopicImage("t", ID, {0: LED, 1: LED}, {}))
    recreated = TopicImage("t", OTHER_ID, {0: LED._replace(partition_epoch=0)}, {"of": "t"})
    value = UpdateMetadata(8, 9, "c", BROKERS, (recreated,), ("t",))
    assert received(value, before, before) == value
    after = before.apply(received(value._replace(removed_topics=()), before))
    assert after.topics["t"] == recreated
    assert after.topic_names == {OTHER_ID: "t"}


def test_what_the_message_does_not_have_stays_as_it_is_known() -> None:
    """Kafka's controllers send only the partitions that changed."""
    known = dict.fromkeys(range(3), LED)
    before = image(TopicImage("t", ID, known, {"old": "config"}))
    changed = LED._replace(leader=2, leader_epoch=6, partition_epoch=10)
    value = UpdateMetadata(8, 9, "c", BROKERS, (TopicImage("t", ID, {1: changed}, {}),))
    (topic,) = received(value, before).topics
    assert topic == TopicImage("t", ID, {**known, 1: changed}, {"old": "config"})


def test_settings_that_changed_while_the_request_was_under_way_stay() -> None:
    """TP-5: a broker takes changes up by itself; what was read for the request may be older."""
    before = image(TopicImage("t", ID, {0: LED}, {"altered": "meanwhile"}))
    value = UpdateMetadata(8, 9, "c", BROKERS, (TopicImage("t", ID, {0: LED}, {}),))
    assert received(value, before).topics[0].config == {"altered": "meanwhile"}
    recreated = UpdateMetadata(8, 9, "c", BROKERS, (TopicImage("t", OTHER_ID, {0: LED}, {}),))
    assert received(recreated, before).topics[0].config == {"of": "t"}


def test_a_state_never_replaces_a_newer_one() -> None:
    """A request that was under way for long comes after one that was sent later."""
    newest = LED._replace(leader_epoch=7, partition_epoch=11)
    before = image(TopicImage("t", ID, {0: newest}, {}))
    late = UpdateMetadata(8, 9, "c", BROKERS, (TopicImage("t", ID, {0: LED}, {}),))
    assert received(late, before).topics[0].partitions == {0: newest}
    same = newest._replace(offline_replicas=(2,))
    again = UpdateMetadata(8, 9, "c", BROKERS, (TopicImage("t", ID, {0: same}, {}),))
    assert received(again, before).topics[0].partitions == {0: same}


def test_what_is_being_reassigned_stays_known_while_the_replicas_are_the_same() -> None:
    moving = LED._replace(adding=(3,), removing=(1,))
    before = image(TopicImage("t", ID, {0: moving}, {}))
    value = UpdateMetadata(8, 9, "c", BROKERS, (TopicImage("t", ID, {0: LED}, {}),))
    assert received(value, before).topics[0].partitions == {0: moving}
    moved = LED._replace(replicas=(2, 3))
    value = UpdateMetadata(8, 9, "c", BROKERS, (TopicImage("t", ID, {0: moved}, {}),))
    assert received(value, before).topics[0].partitions == {0: moved}


def test_brokers_in_older_versions() -> None:
    endpoint = UpdateMetadataEndpoint(port=9, host="h", security_protocol=1)
    for version, broker, expected in (
        (0, UpdateMetadataBroker(id=1, v0_host="h", v0_port=9), "PLAINTEXT"),
        (1, UpdateMetadataBroker(id=1, endpoints=[endpoint]), "SSL"),
        (2, UpdateMetadataBroker(id=1, endpoints=[endpoint]), "SSL"),
    ):
        message = travelled(UpdateMetadataRequest(live_brokers=[broker]), version)
        value = update_metadata_value(message, version, NOTHING, {})
        assert value.brokers == (BrokerImage(1, (Endpoint(expected, "h", 9, expected),), None, -1),)


def test_what_cannot_be_understood_is_refused() -> None:
    strange = UpdateMetadataEndpoint(port=9, host="h", listener="L", security_protocol=4)
    broker = UpdateMetadataBroker(id=1, endpoints=[strange])
    with pytest.raises(InvalidRequest):
        update_metadata_value(UpdateMetadataRequest(live_brokers=[broker]), 8, NOTHING, {})
    states = [UpdateMetadataPartitionState(topic_name="t")]
    topic = UpdateMetadataTopicState(topic_name="t", partition_states=states)
    for message, version in (
        (UpdateMetadataRequest(ungrouped_partition_states=states), 4),
        (UpdateMetadataRequest(topic_states=[topic]), 4),
    ):
        with pytest.raises(UnsupportedVersion):
            update_metadata_value(message, version, NOTHING, {"t": {}})


@pytest.mark.foreign
def test_kafkas_update_metadata_is_understood_and_said_alike(shared: Path) -> None:
    for version, request, _ in recorded(shared, UPDATE_METADATA):
        configs: dict[str, dict[str, str]] = {name: {} for name in update_metadata_topics(request)}
        value = update_metadata_value(request, version, NOTHING, configs)
        said, in_version = update_metadata_request(value, request.broker_epoch, {})
        assert in_version == version
        assert said.live_brokers == request.live_brokers
        states = {each.topic_name: each for each in said.topic_states}
        assert len(states) == len(request.topic_states)
        for topic in request.topic_states:
            if topic.topic_name in value.removed_topics:
                assert all(each.leader == -2 for each in topic.partition_states)
            else:
                assert states[topic.topic_name] == topic
        said.topic_states, request.topic_states = [], []
        assert said == request
