"""Lists Kafka 3.9's broker configs for logs that have no effect yet, with the reason for each."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table
from barnabas.config.topic_keys import LONG_MAX

_COMPACTION = (
    ("log.cleaner.threads", "int", 1, "[0,...]", "Number of threads for compaction."),
)  # fmt: skip

_WRITING = (
    ("log.flush.start.offset.checkpoint.interval.ms", "int", 60000, "[0,...]",
     "Interval at which the start offsets of logs are checkpointed."),
    ("log.initial.task.delay.ms", "long", 30000, "[0,...]",
     "Delay after the start before log maintenance begins."),
    ("log.preallocate", "boolean", False, "", "Whether new segments are preallocated."),
)  # fmt: skip

_ONE_FORMAT = (
    ("log.message.downconversion.enable", "boolean", True, "",
     "Whether batches are converted for old consumers."),
    ("log.message.format.version", "string", "3.0-IV1", "", "Format version of stored records."),
)  # fmt: skip

_TIERED = (
    ("log.local.retention.bytes", "long", -2, "[-2,...]", "Maximum size kept on local disk."),
    ("log.local.retention.ms", "long", -2, "[-2,...]", "How long records are kept on local disk."),
    ("remote.fetch.max.wait.ms", "int", 500, "[1,...]", "Maximum wait for a remote read."),
    ("remote.log.index.file.cache.total.size.bytes", "long", 1073741824, "[1,...]",
     "Disk space for cached indexes of remote segments."),
    ("remote.log.manager.copier.thread.pool.size", "int", -1, "[1,...] or -1",
     "Number of threads that copy segments to remote storage."),
    ("remote.log.manager.copy.max.bytes.per.second", "long", LONG_MAX, "[1,...]",
     "Maximum bytes copied to remote storage per second."),
    ("remote.log.manager.copy.quota.window.num", "int", 11, "[1,...]",
     "Number of windows over which copying is measured."),
    ("remote.log.manager.copy.quota.window.size.seconds", "int", 1, "[1,...]",
     "Length of each window."),
    ("remote.log.manager.expiration.thread.pool.size", "int", -1, "[1,...] or -1",
     "Number of threads that delete remote segments."),
    ("remote.log.manager.fetch.max.bytes.per.second", "long", LONG_MAX, "[1,...]",
     "Maximum bytes fetched from remote storage per second."),
    ("remote.log.manager.fetch.quota.window.num", "int", 11, "[1,...]",
     "Number of windows over which fetching is measured."),
    ("remote.log.manager.fetch.quota.window.size.seconds", "int", 1, "[1,...]",
     "Length of each window."),
    ("remote.log.manager.task.interval.ms", "long", 30000, "[1,...]",
     "Interval of remote-storage tasks."),
    ("remote.log.manager.task.retry.backoff.max.ms", "long", 30000, "",
     "Maximum backoff after a failed task."),
    ("remote.log.manager.task.retry.backoff.ms", "long", 500, "", "Backoff after a failed task."),
    ("remote.log.manager.task.retry.jitter", "double", 0.2, "", "Random part of the backoff."),
    ("remote.log.manager.thread.pool.size", "int", 10, "[1,...]",
     "Number of threads for tiered storage."),
    ("remote.log.metadata.custom.metadata.max.bytes", "int", 128, "[0,...]",
     "Maximum size of a plug-in's custom metadata of a segment."),
    ("remote.log.metadata.manager.class.name", "string",
     "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", "",
     "Java class that manages the remote metadata."),
    ("remote.log.metadata.manager.class.path", "string", None, "", "Class path of that class."),
    ("remote.log.metadata.manager.impl.prefix", "string", "rlmm.config.", "",
     "Prefix of that class's configs."),
    ("remote.log.metadata.manager.listener.name", "string", None, "",
     "Listener to which that class connects."),
    ("remote.log.reader.max.pending.tasks", "int", 100, "[1,...]", "Maximum pending remote reads."),
    ("remote.log.reader.threads", "int", 10, "[1,...]", "Number of threads for remote reads."),
    ("remote.log.storage.manager.class.name", "string", None, "",
     "Java class that stores segments."),
    ("remote.log.storage.manager.class.path", "string", None, "", "Class path of that class."),
    ("remote.log.storage.manager.impl.prefix", "string", "rsm.config.", "",
     "Prefix of that class's configs."),
    ("remote.log.storage.system.enable", "boolean", False, "",
     "Whether tiered storage is enabled."),
)  # fmt: skip

INERT_LOG_KEYS: dict[str, ConfigKey] = {
    **table(_COMPACTION, "a separate process compacts one log at a time"),
    **table(_WRITING, "the broker does not support it yet"),
    **table(_ONE_FORMAT, "only magic 2 is written and nothing is converted"),
    **table(_TIERED, "there is no tiered storage"),
}
