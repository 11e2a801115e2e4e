"""Lists all topic configs, with the broker keys that set their defaults, and defines LogConfig.

The names and their order are the same as in Kafka 3.9. The settings of a topic are stored in
`/config/topics/<topic>`. If a topic does not set a config, the value comes from the first of its
synonyms that is set on the broker.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.config.key import ConfigKey, ConfigValue, unknown_key
from barnabas.errors import ConfigError
from barnabas.named_tuple import NamedTuple

LONG_MAX = 9223372036854775807
CODECS = "[uncompressed, zstd, lz4, snappy, gzip, producer]"

_ROWS: tuple[tuple[str, str, bool | int | float | str | None, str, str, tuple[str, ...]], ...] = (
    ("cleanup.policy", "list", "delete", "[compact, delete]",
     "How old records are removed: deleted by age and size, compacted by key, or both.",
     ("log.cleanup.policy",)),
    ("compression.gzip.level", "int", -1, "[1,...,9] or -1",
     "Compression level if the broker compresses with gzip; -1 is gzip's default.",
     ("compression.gzip.level",)),
    ("compression.lz4.level", "int", 9, "[1,...,17]",
     "Compression level if the broker compresses with lz4.",
     ("compression.lz4.level",)),
    ("compression.type", "string", "producer", CODECS,
     "Compression codec of stored batches; `producer` keeps the producer's.",
     ("compression.type",)),
    ("compression.zstd.level", "int", 3, "[-131072,...,22]",
     "Compression level if the broker compresses with zstd.",
     ("compression.zstd.level",)),
    ("delete.retention.ms", "long", 86400000, "[0,...]",
     "How long a compacted topic keeps tombstones for consumers that read from its start.",
     ("log.cleaner.delete.retention.ms",)),
    ("file.delete.delay.ms", "long", 60000, "[0,...]",
     "How long a deleted segment's files stay on disk.",
     ("log.segment.delete.delay.ms",)),
    ("flush.messages", "long", LONG_MAX, "[1,...]",
     "Number of records after which the log is flushed.",
     ("log.flush.interval.messages",)),
    ("flush.ms", "long", LONG_MAX, "[0,...]",
     "Age of unflushed records after which the log is flushed.",
     ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")),
    ("follower.replication.throttled.replicas", "list", "", "",
     "Replicas whose replication is throttled on the follower, as partition:broker, or `*`.", ()),
    ("index.interval.bytes", "int", 4096, "[0,...]",
     "Bytes appended between two index entries.",
     ("log.index.interval.bytes",)),
    ("leader.replication.throttled.replicas", "list", "", "",
     "Replicas whose replication is throttled on the leader, as partition:broker, or `*`.", ()),
    ("local.retention.bytes", "long", -2, "[-2,...]",
     "Maximum size kept on local disk with tiered storage; -2 means retention.bytes.",
     ("log.local.retention.bytes",)),
    ("local.retention.ms", "long", -2, "[-2,...]",
     "How long records are kept on local disk with tiered storage; -2 means retention.ms.",
     ("log.local.retention.ms",)),
    ("max.compaction.lag.ms", "long", LONG_MAX, "[1,...]",
     "Age at which a record must be compacted at the latest.",
     ("log.cleaner.max.compaction.lag.ms",)),
    ("max.message.bytes", "int", 1048588, "[0,...]",
     "Maximum size of a record batch, including its header, after compression if it is compressed.",
     ("message.max.bytes",)),
    ("message.downconversion.enable", "boolean", True, "",
     "Whether batches are converted to an older format for old consumers; Barnabas never converts.",
     ("log.message.downconversion.enable",)),
    ("message.format.version", "string", "3.0-IV1", "",
     "Deprecated setting for an older record format; only magic 2 is written.",
     ("log.message.format.version",)),
    ("message.timestamp.after.max.ms", "long", LONG_MAX, "[0,...]",
     "How far a record's timestamp may be ahead of the broker's clock.",
     ("log.message.timestamp.after.max.ms",)),
    ("message.timestamp.before.max.ms", "long", LONG_MAX, "[0,...]",
     "How far a record's timestamp may be behind the broker's clock.",
     ("log.message.timestamp.before.max.ms",)),
    ("message.timestamp.difference.max.ms", "long", LONG_MAX, "[0,...]",
     "Deprecated name for both bounds above; used if they are not set.",
     ("log.message.timestamp.difference.max.ms",)),
    ("message.timestamp.type", "string", "CreateTime", "[CreateTime, LogAppendTime]",
     "Source of record timestamps: the producer (CreateTime) or the broker (LogAppendTime).",
     ("log.message.timestamp.type",)),
    ("min.cleanable.dirty.ratio", "double", 0.5, "[0,...,1]",
     "Share of a compacted log that must be dirty before it is cleaned.",
     ("log.cleaner.min.cleanable.ratio",)),
    ("min.compaction.lag.ms", "long", 0, "[0,...]",
     "Age below which a record is not compacted.",
     ("log.cleaner.min.compaction.lag.ms",)),
    ("min.insync.replicas", "int", 1, "[1,...]",
     "Minimum number of in-sync replicas for a write with acks=all to be accepted.",
     ("min.insync.replicas",)),
    ("preallocate", "boolean", False, "",
     "Whether a new segment is preallocated.",
     ("log.preallocate",)),
    ("remote.log.copy.disable", "boolean", False, "",
     "With tiered storage: whether copying segments to remote storage stops.", ()),
    ("remote.log.delete.on.disable", "boolean", False, "",
     "With tiered storage: whether disabling it deletes the remote segments.", ()),
    ("remote.storage.enable", "boolean", False, "",
     "Whether the topic's older segments move to tiered storage.", ()),
    ("retention.bytes", "long", -1, "",
     "Size of a partition above which its oldest segments are deleted; -1 means no limit.",
     ("log.retention.bytes",)),
    ("retention.ms", "long", 604800000, "[-1,...]",
     "Age at which records are deleted; -1 means never.",
     ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
    ("segment.bytes", "int", 1073741824, "[14,...]",
     "Size at which a segment is rolled.",
     ("log.segment.bytes",)),
    ("segment.index.bytes", "int", 10485760, "[4,...]",
     "Size of a segment's preallocated indexes; a full index rolls the segment.",
     ("log.index.size.max.bytes",)),
    ("segment.jitter.ms", "long", 0, "[0,...]",
     "Random jitter subtracted from segment.ms, so that segments do not all roll at once.",
     ("log.roll.jitter.ms", "log.roll.jitter.hours")),
    ("segment.ms", "long", 604800000, "[1,...]",
     "Age at which a segment is rolled even if it is not full.",
     ("log.roll.ms", "log.roll.hours")),
    ("unclean.leader.election.enable", "boolean", False, "",
     "Whether an out-of-sync replica may become leader as a last resort, which loses records.",
     ("unclean.leader.election.enable",)),
)  # fmt: skip

_NOT_TIERED = "there is no tiered storage"
_ONE_FORMAT = "only magic 2 is written and nothing is converted"

_INERT: Mapping[str, str] = {
    "local.retention.bytes": _NOT_TIERED,
    "local.retention.ms": _NOT_TIERED,
    "remote.log.copy.disable": _NOT_TIERED,
    "remote.log.delete.on.disable": _NOT_TIERED,
    "remote.storage.enable": _NOT_TIERED,
    "message.downconversion.enable": _ONE_FORMAT,
    "message.format.version": _ONE_FORMAT,
    "preallocate": "segments grow as they are written",
}

TOPIC_KEYS: Mapping[str, ConfigKey] = {
    name: ConfigKey(name, kind, default, valid, doc, _INERT.get(name, ""), synonyms)
    for name, kind, default, valid, doc, synonyms in _ROWS
}

SAME_SETTING: Mapping[str, tuple[str, ...]] = {
    name: key.synonyms
    for key in TOPIC_KEYS.values()
    for name in key.synonyms
    if len(key.synonyms) > 1 and name != "log.flush.scheduler.interval.ms"
}
"""Groups of broker keys that set the same value in different units.

The key with the highest priority comes first. The flush interval of the scheduler is not included:
it sets the other flush interval, but not the other way round.
"""

# Rules that cannot be expressed in `valid`. They are compiled when they are first needed, because
# startup does not need them.
_PATTERNS: Mapping[str, tuple[str, str]] = {
    "message.format.version": (r"\d+\.\d+(\.\d+)*(-IV\d+)?", "a version of Kafka, such as 2.8-IV1"),
    **dict.fromkeys(
        ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"),
        (r"\*|(\d+:\d+(,\d+:\d+)*)?", "* or a list of partition:broker,partition:broker"),
    ),
}


def topic_warnings(overrides: Mapping[str, str]) -> list[str]:
    """Return a warning for each setting of a topic that has no effect, with the reason."""
    return [
        f"{name} has no effect: {TOPIC_KEYS[name].inert}"
        for name in overrides
        if name in TOPIC_KEYS and TOPIC_KEYS[name].inert
    ]


class LogConfig(NamedTuple):
    """The configuration of a log as typed values. Lists are comma-separated text."""

    cleanup_policy: str = "delete"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86400000
    file_delete_delay_ms: int = 60000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: str = ""
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: str = ""
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1048588
    message_downconversion_enable: bool = True
    message_format_version: str = "3.0-IV1"
    message_timestamp_after_max_ms: int = LONG_MAX
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_difference_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604800000
    segment_bytes: int = 1073741824
    segment_index_bytes: int = 10485760
    segment_jitter_ms: int = 0
    segment_ms: int = 604800000
    unclean_leader_election_enable: bool = False

    @property
    def is_compacted(self) -> bool:
        """Return whether only the last record of each key is kept.

        Old records may also be deleted.
        """
        return "compact" in self.cleanup_policy.split(",")

    def with_overrides(self, overrides: Mapping[str, str]) -> LogConfig:
        """Return this configuration with the settings of a topic applied.

        Raises ConfigError if a setting is invalid.
        """
        if not overrides:
            return self
        values: dict[str, ConfigValue] = {}
        for name, text in overrides.items():
            key = TOPIC_KEYS.get(name)
            if key is None:
                raise unknown_key(name, TOPIC_KEYS, "topic")
            values[name.replace(".", "_")] = value = _field(key.parse(text))
            if name in _PATTERNS:
                _check_pattern(name, str(value))
        config = self._replace(**values)  # type: ignore[arg-type]
        return config._resolve(values)

    def _resolve(self, given: Mapping[str, ConfigValue]) -> LogConfig:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                f"min.compaction.lag.ms ({self.min_compaction_lag_ms}) is above "
                f"max.compaction.lag.ms ({self.max_compaction_lag_ms}); lower the former"
            )
        # KIP-937 replaced the old limit with two new ones. The old name sets each new limit that is
        # not set itself.
        config = self
        difference_ms = given.get("message_timestamp_difference_max_ms")
        if isinstance(difference_ms, int):
            if "message_timestamp_before_max_ms" not in given:
                config = config._replace(message_timestamp_before_max_ms=difference_ms)
            if "message_timestamp_after_max_ms" not in given:
                config = config._replace(message_timestamp_after_max_ms=difference_ms)
        return config


def unusable(settings: Mapping[str, str]) -> dict[str, str]:
    """Return which of a topic's stored settings are invalid, and why."""
    reasons = {}
    for name, text in settings.items():
        try:
            LogConfig().with_overrides({name: text})
        except ConfigError as error:
            reasons[name] = str(error)
    return reasons


def _field(value: ConfigValue) -> ConfigValue:
    return ",".join(value) if isinstance(value, list) else value


def _check_pattern(name: str, text: str) -> None:
    pattern, rule = _PATTERNS[name]
    if not re.fullmatch(pattern, text, re.ASCII):
        raise ConfigError(f"{name}: {text!r} is not {rule}")
