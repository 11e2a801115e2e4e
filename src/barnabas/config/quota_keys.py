"""Broker configs of quotas: over what time clients are measured."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_ROWS = (
    ("quota.window.num", "int", 11, "[1,...]",
     "Windows over which the rates of clients are measured."),
    ("quota.window.size.seconds", "int", 1, "[1,...]", "Length of such a window."),
    ("controller.quota.window.num", "int", 11, "[1,...]",
     "Windows whose partitions a client may create or delete at once."),
    ("controller.quota.window.size.seconds", "int", 1, "[1,...]", "Length of such a window."),
)  # fmt: skip

QUOTA_KEYS: dict[str, ConfigKey] = table(_ROWS)
