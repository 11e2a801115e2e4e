"""Interprets `inter.broker.protocol.version`, which determines how leaders change their ISRs.

Versions are written as in Kafka: `2.6`, `2.7-IV1`, `0.10.2`. A version without `-IV` refers to the
last version of that release.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.errors import ConfigError

NAME: Final = "inter.broker.protocol.version"

_FORM: Final = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*(?:-IV(\d+))?")
_LAST: Final = 1_000
_ALTER_PARTITION: Final = (2, 7, 2)
"""2.7-IV2. Since this version, only the controller writes ISRs, when leaders request it
(KIP-497).
"""


def writes_isrs(version: str) -> bool:
    """Return whether leaders write the state nodes of their partitions themselves (RE-9).

    Raises ConfigError.
    """
    found = _FORM.fullmatch(version.strip())
    if found is None:
        raise ConfigError(f"{NAME}={version}: expected a version of Kafka, such as 3.9 or 2.6-IV0")
    major, minor, step = found.groups()
    # Kafka 2.6 does not support AlterPartition, so the leaders write the nodes during a rolling
    # upgrade from 2.6.
    return (int(major), int(minor), _LAST if step is None else int(step)) < _ALTER_PARTITION
