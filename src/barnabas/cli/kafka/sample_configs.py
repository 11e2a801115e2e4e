"""Provides the `config/*.properties` that `barnabas install-scripts` writes for users to edit.
Pure.

A line that starts with `#`, without a blank after it, is a setting to uncomment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_SERVER = """\
# The settings of a broker. Start it with: kafka-server-start.sh {config}/server.properties
# Settings that are not listed here have their defaults. To read about a setting, run
# barnabas configs describe --explain NAME

# ---- identity and addresses ----

# The id of this broker. Each broker of a cluster has its own id.
broker.id=0

# The address on which the broker listens. Without a host before the port, it listens on all
# addresses of the machine, and anyone who can reach it may use it, until you set up users and
# access rules (see the page on security).
listeners=PLAINTEXT://:9092

# The address that clients get. If there are clients on other machines, uncomment the line and
# replace localhost with the name of this machine.
#advertised.listeners=PLAINTEXT://localhost:9092

# ---- storage ----

# The directories in which partitions are stored, separated by commas; usually one for each disk.
log.dirs={data}/broker

# The number of partitions of a topic that is created without a number.
num.partitions=1

# The internal topics for committed offsets and for transactions. A single broker can store only one
# replica. With three brokers, set the first two to 3 and the last one to 2 before the first start.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1

# ---- retention ----

# Records older than this are deleted, a whole segment at a time. log.retention.ms takes precedence.
log.retention.hours=168

# The oldest records of a partition larger than this are deleted as well; -1 means no limit.
#log.retention.bytes=-1

# The size at which a segment is closed and a new one is begun.
#log.segment.bytes=1073741824

# How often the broker looks for segments to delete.
#log.retention.check.interval.ms=300000

# ---- groups ----

# How long a new group waits for more members before it assigns the partitions. 0 is best for trying
# things out; if many consumers start at the same time, 3000 saves them some rebalances.
group.initial.rebalance.delay.ms=0

# ---- clusters ----

# The ZooKeeper that the brokers of a cluster share, with an optional path at the end. Leave it
# commented out for a single broker, which stores the metadata itself.
#zookeeper.connect=localhost:2181
#zookeeper.connection.timeout.ms=18000

# A follower that has not caught up for this long leaves the in-sync replicas.
#replica.lag.time.max.ms=30000

# How many replicas must have a record before a producer with acks=all gets its acknowledgement.
#min.insync.replicas=1
"""

_ZOOKEEPER = """\
# The settings of a ZooKeeper for brokers that form a cluster; a single broker needs none.
# Start it with: zookeeper-server-start.sh {config}/zookeeper.properties

# The directory in which it stores its tree.
dataDir={data}/zookeeper

# The port and the address for brokers. Only this machine can reach this address. If brokers run on
# other machines, remove it or set another one; anyone who can reach it may change the cluster.
clientPort=2181
clientPortAddress=127.0.0.1

# The maximum number of connections from one machine; 0 means no limit.
maxClientCnxns=0

# The web page for administrators, which brokers do not use.
admin.enableServer=false
"""

_PRODUCER = """\
# The settings of a producer. Use them with:
# kafka-console-producer.sh --topic test --producer.config {config}/producer.properties

# One or more brokers to contact first; the client finds the other brokers through them.
bootstrap.servers=localhost:9092

# When a record is acknowledged: once all in-sync replicas have it (all), once the leader has it
# (1), or immediately (0).
acks=all

# The compression of batches: none, gzip, snappy, lz4 or zstd.
compression.type=none

# How long a record waits for more records in its batch, and the maximum size of a batch.
#linger.ms=0
#batch.size=16384

# The maximum size of a request, and therefore of a record.
#max.request.size=1048576

# The time after which a record that has not been acknowledged fails.
#delivery.timeout.ms=120000
"""

_CONSUMER = """\
# The settings of a consumer. Use them with:
# kafka-console-consumer.sh --topic test --consumer.config {config}/consumer.properties

# One or more brokers to contact first; the client finds the other brokers through them.
bootstrap.servers=localhost:9092

# The consumer's group. Its members share the partitions, and continue from the committed offsets.
group.id=test-consumer-group

# Where a group without committed offsets starts: earliest, latest, or none, which is an error.
#auto.offset.reset=latest

# Whether positions are committed automatically, and how often.
#enable.auto.commit=true
#auto.commit.interval.ms=5000

# The maximum number of records that one poll returns.
#max.poll.records=500

# How often the client looks for new partitions.
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
