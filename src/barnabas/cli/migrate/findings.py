"""Finds what cannot come along when Kafka's brokers are replaced (MX-4). Pure.

A finding that blocks makes the replacement impossible, or would lose data or protection. Any other
one is something to know: the broker works without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.cli.migrate.facts import BARNABAS, KAFKA, UNKNOWN, BrokerFacts, ClusterFacts
from barnabas.config.authorization_keys import check_authorizer
from barnabas.config.broker_keys import key_of
from barnabas.config.security_claims import broken_promise
from barnabas.config.topic_keys import TOPIC_KEYS, topic_warnings
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.protocol.api import APIS

_AMONG_BROKERS = frozenset({1, 4, 5, 6, 7, 23, 27, 56})
"""Fetch, LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown, OffsetForLeaderEpoch,
WriteTxnMarkers and AlterPartition."""

_KRAFT_ONLY = 55  # DescribeQuorum, which only brokers of a KRaft cluster have
_IBP = "inter.broker.protocol.version"
_LOWEST_IBP, _OWN_IBP = (2, 7), (3, 9)
_ZOOKEEPER = "zookeeper.connect"
_AUTHORIZER = "authorizer.class.name"
_MECHANISMS, _KERBEROS = "sasl.enabled.mechanisms", "GSSAPI"
_TIERED = "remote.log.storage.system.enable"
_TIERED_TOPIC = "remote.storage.enable"
_FORMATS = ("log.message.format.version", "message.format.version")
_LEAST_FORMAT = (0, 11)


class Finding(NamedTuple):
    """Says what was found, where, and what to do about it."""

    blocks: bool
    where: str
    what: str
    remedy: str

    @property
    def text(self) -> str:
        return f"{self.where}: {self.what}; {self.remedy}"


def findings(facts: ClusterFacts) -> list[Finding]:
    """Return everything about the Kafka brokers and the topics, what blocks first."""
    found = [
        each
        for broker in facts.brokers.values()
        if broker.kind == KAFKA
        for each in _of_broker(broker)
    ]
    found += _of_missing(facts)
    found += _of_topics(facts)
    found += _of_cluster(facts)
    return sorted(found, key=lambda each: not each.blocks)


def return_findings(facts: ClusterFacts) -> list[Finding]:
    """Return what prevents Kafka's brokers from replacing ours."""
    return [
        Finding(
            True,
            f"broker {each.broker_id}",
            "it runs without ZooKeeper, which Kafka needs",
            "import what `barnabas metadata export` writes into a ZooKeeper, and start the broker "
            "with zookeeper.connect first",
        )
        for each in facts.brokers.values()
        if each.kind == BARNABAS and each.versions and not each.configs.get(_ZOOKEEPER)
    ]


def _of_broker(broker: BrokerFacts) -> Iterator[Finding]:
    where = f"broker {broker.broker_id}"
    if _is_kraft(broker):
        yield Finding(
            True,
            where,
            "it belongs to a KRaft cluster, which has no ZooKeeper",
            "copy its topics with `barnabas copy` instead (see docs/coming-from-kafka)",
        )
        return
    yield from _of_protocol(broker, where)
    if broker.features:
        yield Finding(
            True,
            where,
            f"it has finalized features ({', '.join(broker.features)}), which Barnabas lacks",
            "downgrade them with kafka-features.sh before you start",
        )
    for name, text in sorted(broker.configs.items()):
        yield from _of_config(where, name, text)


def _of_missing(facts: ClusterFacts) -> Iterator[Finding]:
    for broker_id in facts.broker_ids():
        if facts.kind_of(broker_id) == UNKNOWN:
            yield Finding(
                True,
                f"broker {broker_id}",
                "it does not respond, so it was not checked",
                "start it, and repeat the check",
            )


def _is_kraft(broker: BrokerFacts) -> bool:
    return _KRAFT_ONLY in broker.versions or bool(broker.configs.get("process.roles"))


def _of_protocol(broker: BrokerFacts, where: str) -> Iterator[Finding]:
    text = broker.configs.get(_IBP)
    if text is not None and _version(text) < _LOWEST_IBP:
        yield Finding(
            True,
            where,
            f"{_IBP}={text} is below 2.7, so its leaders change ISRs without the controller",
            f"set {_IBP} to the version of the broker, and restart the brokers one by one",
        )
    elif text is None and broker.protocol and _version(broker.protocol) < _OWN_IBP:
        yield Finding(
            False,
            where,
            f"{_IBP} is not set; it is {broker.protocol} here, and 3.9 on the new broker",
            f"set {_IBP}={broker.protocol} in the properties of the new broker",
        )
    for key in sorted(_AMONG_BROKERS):
        api, offered = APIS[key], broker.versions.get(key)
        if broker.versions and offered is None:
            yield Finding(
                True,
                where,
                f"it lacks the API {api.name}, which brokers use among each other",
                "upgrade it to Kafka 2.8 or later (up to 3.9)",
            )
        elif offered and (offered[1] < api.min_version or offered[0] > api.max_version):
            yield Finding(
                True,
                where,
                f"it has {api.name} in versions {offered[0]} to {offered[1]}, Barnabas has "
                f"{api.min_version} to {api.max_version}",
                "run a version of Kafka from 2.8 to 3.9",
            )


def _of_config(where: str, name: str, text: str | None) -> Iterator[Finding]:
    """Judge a config as the broker does at startup. The value of a secret is not known."""
    if name == _TIERED and (text or "").lower() == "true":
        yield Finding(
            True,
            where,
            "it has tiered storage, and Barnabas cannot read remote segments",
            f"disable {_TIERED_TOPIC} for each topic, wait until all segments are local, and "
            f"set {_TIERED}=false",
        )
        return
    if name.endswith(_MECHANISMS) and _KERBEROS in (text or ""):
        yield Finding(
            True,
            where,
            f"{name}={text}: clients log in with Kerberos, which Barnabas lacks",
            "let all clients and brokers use another mechanism, and remove GSSAPI",
        )
        return
    try:
        key = key_of(name)
        if text is not None:
            key.parse(text)
            if name == _AUTHORIZER and text:
                check_authorizer(text)
    except ConfigError as error:
        yield Finding(True, where, str(error), "remove it from the properties of the new broker")
        return
    if key.inert and (problem := broken_promise(name, text or "")):
        what, _, remedy = problem.partition(": ")
        yield Finding(True, where, what, remedy)
    elif name in _FORMATS and text is not None and _version(text) < _LEAST_FORMAT:
        yield _old_format(where, name, text)
    elif key.inert:
        yield Finding(False, where, f"{name} has no effect: {key.inert}", "nothing has to be done")


def _of_topics(facts: ClusterFacts) -> Iterator[Finding]:
    for topic, configs in sorted(facts.topic_configs.items()):
        where = f"topic {topic}"
        for name, text in sorted(configs.items()):
            if name == _TIERED_TOPIC and (text or "").lower() == "true":
                yield Finding(
                    True,
                    where,
                    "its old segments are in tiered storage, which Barnabas cannot read",
                    f"set {_TIERED_TOPIC}=false, and wait until all segments are local",
                )
            elif name not in TOPIC_KEYS:
                yield Finding(
                    True, where, f"{name} is unknown to Barnabas", f"delete {name} from the topic"
                )
            elif name in _FORMATS and text is not None and _version(text) < _LEAST_FORMAT:
                yield _old_format(where, name, text)
            else:
                for warning in topic_warnings({name: text or ""}):
                    yield Finding(False, where, warning, "nothing has to be done")


def _old_format(where: str, name: str, text: str) -> Finding:
    return Finding(
        True,
        where,
        f"{name}={text}: old clients read and write formats 0 and 1, and nothing is converted",
        "upgrade the clients, and delete this config",
    )


def _of_cluster(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.tokens:
        yield Finding(
            False,
            "the cluster",
            f"it has {counted(facts.tokens, 'delegation token')}",
            "give each new broker the same delegation.token.secret.key",
        )
    single = [name for name, view in facts.partitions() if len(view.replicas) == 1]
    if single:
        named = ", ".join(map(str, single[:3])) + ", ..." * (len(single) > 3)
        yield Finding(
            False,
            "the cluster",
            f"{counted(len(single), 'partition')} with a single replica ({named})",
            "they have no leader while their broker is replaced, unless you add replicas first",
        )


def _version(text: str) -> tuple[int, ...]:
    """Return (3, 9) for `3.9-IV0`, and nothing for a text that is no version."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()
