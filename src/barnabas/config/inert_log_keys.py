"""Lists the broker configs of Kafka 3.9 for logs that have no effect here yet, with the reasons."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table
from barnabas.config.topic_keys import LONG_MAX

_COMPACTION = (
    ("log.cleaner.threads", "int", 1, "[0,...]", "Threads of compaction."),
)  # fmt: skip

_WRITING = (
    ("log.flush.start.offset.checkpoint.interval.ms", "int", 60000, "[0,...]",
     "How often the start offsets of logs are checkpointed."),
    ("log.initial.task.delay.ms", "long", 30000, "[0,...]",
     "Pause after the start before log maintenance begins."),
    ("log.preallocate", "boolean", False, "", "Whether a segment takes its space at once."),
)  # fmt: skip

_ONE_FORMAT = (
    ("log.message.downconversion.enable", "boolean", True, "",
     "Whether batches are converted for old consumers."),
    ("log.message.format.version", "string", "3.0-IV1", "", "Format of records that are written."),
)  # fmt: skip

_TIERED = (
    ("log.local.retention.bytes", "long", -2, "[-2,...]", "Size kept on local disk."),
    ("log.local.retention.ms", "long", -2, "[-2,...]", "Time kept on local disk."),
    ("remote.fetch.max.wait.ms", "int", 500, "[1,...]", "Wait for a remote read."),
    ("remote.log.index.file.cache.total.size.bytes", "long", 1073741824, "[1,...]",
     "Disk for indexes of remote segments."),
    ("remote.log.manager.copier.thread.pool.size", "int", -1, "[1,...] or -1",
     "Threads that copy segments away."),
    ("remote.log.manager.copy.max.bytes.per.second", "long", LONG_MAX, "[1,...]",
     "Bytes copied away per second."),
    ("remote.log.manager.copy.quota.window.num", "int", 11, "[1,...]",
     "Windows over which copying is measured."),
    ("remote.log.manager.copy.quota.window.size.seconds", "int", 1, "[1,...]",
     "Length of such a window."),
    ("remote.log.manager.expiration.thread.pool.size", "int", -1, "[1,...] or -1",
     "Threads that delete remote segments."),
    ("remote.log.manager.fetch.max.bytes.per.second", "long", LONG_MAX, "[1,...]",
     "Bytes read back per second."),
    ("remote.log.manager.fetch.quota.window.num", "int", 11, "[1,...]",
     "Windows over which reading back is measured."),
    ("remote.log.manager.fetch.quota.window.size.seconds", "int", 1, "[1,...]",
     "Length of such a window."),
    ("remote.log.manager.task.interval.ms", "long", 30000, "[1,...]",
     "Time between two rounds of copying."),
    ("remote.log.manager.task.retry.backoff.max.ms", "long", 30000, "",
     "Longest pause after a failed round."),
    ("remote.log.manager.task.retry.backoff.ms", "long", 500, "", "Pause after a failed round."),
    ("remote.log.manager.task.retry.jitter", "double", 0.2, "", "Random part of that pause."),
    ("remote.log.manager.thread.pool.size", "int", 10, "[1,...]", "Threads of tiered storage."),
    ("remote.log.metadata.custom.metadata.max.bytes", "int", 128, "[0,...]",
     "Largest metadata of a plug-in about a segment."),
    ("remote.log.metadata.manager.class.name", "string",
     "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", "",
     "Java class that keeps the remote metadata."),
    ("remote.log.metadata.manager.class.path", "string", None, "", "Where that class is."),
    ("remote.log.metadata.manager.impl.prefix", "string", "rlmm.config.", "",
     "Prefix of that class's own settings."),
    ("remote.log.metadata.manager.listener.name", "string", None, "",
     "Listener that it connects to."),
    ("remote.log.reader.max.pending.tasks", "int", 100, "[1,...]", "Remote reads that may wait."),
    ("remote.log.reader.threads", "int", 10, "[1,...]", "Threads for remote reads."),
    ("remote.log.storage.manager.class.name", "string", None, "",
     "Java class that stores segments."),
    ("remote.log.storage.manager.class.path", "string", None, "", "Where that class is."),
    ("remote.log.storage.manager.impl.prefix", "string", "rsm.config.", "",
     "Prefix of that class's own settings."),
    ("remote.log.storage.system.enable", "boolean", False, "", "Whether storage is tiered."),
)  # fmt: skip

INERT_LOG_KEYS: dict[str, ConfigKey] = {
    **table(_COMPACTION, "one separate process compacts, one log at a time"),
    **table(_WRITING, "the broker does not support it yet"),
    **table(_ONE_FORMAT, "only magic 2 is written, and nothing is converted"),
    **table(_TIERED, "there is no tiered storage"),
}
