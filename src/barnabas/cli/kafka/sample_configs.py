"""Provides the `config/*.properties` that `barnabas install-scripts` writes for users to edit.
Pure.

A line that starts with `#`, without a blank after it, is a setting to uncomment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_SERVER = """\
# A broker. Start it by: kafka-server-start.sh {config}/server.properties
# A setting that is not here has its default; this describes one:
# barnabas configs describe --explain NAME

# ---- who it is, and where it is reached ----

# The number of this broker. Each broker of a cluster has a number of its own.
broker.id=0

# Where it listens. Without an address before the port: on all addresses of the machine, for anyone
# who reaches it, until users and rules are set up (see the page on security).
listeners=PLAINTEXT://:9092

# The address that clients are given. They must reach this broker by it: uncomment it, with the name
# of this machine, when clients run on others.
#advertised.listeners=PLAINTEXT://localhost:9092

# ---- where records are kept ----

# The directories of the partitions, with commas between them: one for each disk.
log.dirs={data}/broker

# The partitions of a topic that is created without a number of them.
num.partitions=1

# Internal topics: of committed offsets, and of transactions. One replica is all that one broker can
# keep. With three brokers set the first two to 3, and the last one to 2, before their first start.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1

# ---- how long records are kept ----

# Records older than this are deleted, a whole segment at a time. log.retention.ms takes precedence.
log.retention.hours=168

# Records beyond this size of a partition are deleted as well; -1: its size does not matter.
#log.retention.bytes=-1

# A segment that is larger than this is closed, and a new one begun.
#log.segment.bytes=1073741824

# How often it looks for segments to delete.
#log.retention.check.interval.ms=300000

# ---- groups ----

# How long a new group waits for more members before it shares out the partitions. 0 is best to try
# things out; with many consumers that start together 3000 spares them some rebalances.
group.initial.rebalance.delay.ms=0

# ---- a cluster ----

# The ZooKeeper that several brokers share, with an optional path behind it. Leave it commented out
# for a single broker, which keeps the metadata by itself.
#zookeeper.connect=localhost:2181
#zookeeper.connection.timeout.ms=18000

# A follower that has not caught up for this long leaves the in-sync replicas.
#replica.lag.time.max.ms=30000

# How many replicas must have a record before a producer with acks=all is answered.
#min.insync.replicas=1
"""

_ZOOKEEPER = """\
# A ZooKeeper for brokers that form a cluster; a single broker needs none.
# Start it by: zookeeper-server-start.sh {config}/zookeeper.properties

# Where it keeps its tree.
dataDir={data}/zookeeper

# The port for brokers, and the address: only this machine reaches it. Remove the address, or name
# another one, for brokers on other machines; anyone who reaches it may change the cluster.
clientPort=2181
clientPortAddress=127.0.0.1

# How many connections one machine may have; 0: any number.
maxClientCnxns=0

# Its web page for administrators is of no use to brokers.
admin.enableServer=false
"""

_PRODUCER = """\
# Settings of a producer. Use them by:
# kafka-console-producer.sh --topic test --producer.config {config}/producer.properties

# One or more brokers to ask first; the others are learnt from them.
bootstrap.servers=localhost:9092

# When a record counts as written: all (by every in-sync replica), 1 (by the leader), 0 (at once).
acks=all

# Batches are compressed with none, gzip, snappy, lz4 or zstd.
compression.type=none

# How long a record waits for others to share its batch, and how large a batch may become.
#linger.ms=0
#batch.size=16384

# The largest request, and so the largest record.
#max.request.size=1048576

# How long a record may take before it has failed.
#delivery.timeout.ms=120000
"""

_CONSUMER = """\
# Settings of a consumer. Use them by:
# kafka-console-consumer.sh --topic test --consumer.config {config}/consumer.properties

# One or more brokers to ask first; the others are learnt from them.
bootstrap.servers=localhost:9092

# The group that it is a member of. Its members share the partitions, and continue where it stopped.
group.id=test-consumer-group

# Where a group begins that has committed nothing: earliest, latest, or none, which is an error.
#auto.offset.reset=latest

# Whether positions are committed automatically, and how often.
#enable.auto.commit=true
#auto.commit.interval.ms=5000

# How many records one poll returns at most.
#max.poll.records=500

# How often it looks for new partitions.
#metadata.max.age.ms=300000
"""


def sample_configs(config: Path, data: Path) -> Mapping[str, str]:
    """Return the text of each file in the directory `config`. Brokers store their data under
    `data`.
    """
    texts = {
        "server.properties": _SERVER,
        "zookeeper.properties": _ZOOKEEPER,
        "producer.properties": _PRODUCER,
        "consumer.properties": _CONSUMER,
    }
    return {name: text.format(config=config, data=data) for name, text in texts.items()}
