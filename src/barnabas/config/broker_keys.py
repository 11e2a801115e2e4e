"""The broker configs that have effect here; BROKER_KEYS joins them with the others.

Rows: name, type, default, valid values in the notation of Kafka's documentation, a sentence.
Defaults are Kafka 3.9's, except where the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from barnabas.config.key import ConfigKey, table

PREFIXES = ("listener.name.", "rlmm.config.", "rsm.config.")
"""Beginnings of names that have no rows: settings of one listener or of a plug-in."""

_NODE = (
    ("broker.id", "int", 0, "[0,...]",
     "This broker's number in its cluster; unset it is 0 (in Kafka: a generated one)."),
    ("zookeeper.connect", "string", None, "",
     "The cluster's ZooKeeper servers as host:port,host:port/chroot; not supported yet."),
    ("auto.create.topics.enable", "boolean", True, "",
     "Whether asking for or producing to an unknown topic creates it."),
    ("delete.topic.enable", "boolean", True, "",
     "Whether topics can be deleted at all."),
    ("num.partitions", "int", 1, "[1,...]",
     "Number of partitions of a topic that is created without saying how many."),
    ("default.replication.factor", "int", 1, "",
     "Number of replicas of a topic that is created without saying how many."),
    ("min.insync.replicas", "int", 1, "[1,...]",
     "Least number of in-sync replicas for which a write with acks=all is accepted."),
    ("broker.rack", "string", None, "",
     "Where this broker stands; replicas are spread over racks."),
)  # fmt: skip

_NETWORK = (
    ("listeners", "string", "PLAINTEXT://:9092", "",
     "Addresses to listen on, as NAME://host:port; no host means all interfaces."),
    ("advertised.listeners", "string", None, "",
     "Addresses told to clients; unset, the one through which the client came."),
    ("listener.security.protocol.map", "string",
     "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "",
     "Which security protocol each listener name speaks, as NAME:PROTOCOL."),
    ("socket.request.max.bytes", "int", 104857600, "[1,...]",
     "Largest request that is read; a larger one closes the connection."),
    ("queued.max.request.bytes", "long", -1, "",
     "Bytes of requests in memory above which no more are read; -1 is no limit."),
)  # fmt: skip

_LOG = (
    ("log.dir", "string", "/tmp/kafka-logs", "",
     "Directory of the data where log.dirs is not set."),
    ("log.dirs", "string", None, "",
     "Directories of the data, separated by commas."),
    ("log.segment.bytes", "int", 1073741824, "[14,...]",
     "Size at which a segment is closed and the next one begun."),
    ("log.roll.ms", "long", None, "",
     "Age at which a segment is closed though it is not full."),
    ("log.roll.hours", "int", 168, "[1,...]",
     "The same in hours, where log.roll.ms is not set."),
    ("log.roll.jitter.ms", "long", None, "",
     "Random part by which the age above is cut, so that segments do not all close at once."),
    ("log.roll.jitter.hours", "int", 0, "[0,...]",
     "The same in hours, where log.roll.jitter.ms is not set."),
    ("log.index.interval.bytes", "int", 4096, "[0,...]",
     "Bytes appended between two entries of the indexes."),
    ("log.index.size.max.bytes", "int", 10485760, "[4,...]",
     "Size for which a segment's indexes are preallocated."),
    ("message.max.bytes", "int", 1048588, "[0,...]",
     "Largest record batch that is accepted, as it comes (compressed), header included."),
    ("log.message.timestamp.type", "string", "CreateTime", "[CreateTime, LogAppendTime]",
     "Whose clock stamps a record: its creator's or the log's."),
    ("log.segment.delete.delay.ms", "long", 60000, "[0,...]",
     "How long a file that is out of use stays on disk before it is removed."),
    ("replica.high.watermark.checkpoint.interval.ms", "long", 5000, "",
     "How often the high watermarks are written to disk."),
    ("log.flush.offset.checkpoint.interval.ms", "int", 60000, "[0,...]",
     "How often the offsets up to which logs are safely on disk are written down."),
)  # fmt: skip

_EFFECTIVE: Mapping[str, ConfigKey] = {**table(_NODE), **table(_NETWORK), **table(_LOG)}


class _BrokerKeys(Mapping[str, ConfigKey]):
    """All broker configs. Those without effect are loaded when one is asked for: few starts do."""

    __slots__ = ()

    def __getitem__(self, name: str) -> ConfigKey:
        key = _EFFECTIVE.get(name)
        return _inert()[name] if key is None else key

    def __iter__(self) -> Iterator[str]:
        return chain(_EFFECTIVE, _inert())

    def __len__(self) -> int:
        return len(_EFFECTIVE) + len(_inert())


def _inert() -> Mapping[str, ConfigKey]:
    from barnabas.config.inert_keys import INERT_KEYS

    return INERT_KEYS


BROKER_KEYS: Mapping[str, ConfigKey] = _BrokerKeys()
