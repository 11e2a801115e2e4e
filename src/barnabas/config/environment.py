"""Reads settings from the environment: `KAFKA_LOG_DIRS` sets `log.dirs`, as in Kafka's image.

Only variables that correspond to a config are used. Many others start with `KAFKA_`: a program's
`KAFKA_BOOTSTRAP_SERVERS`, settings for Kafka's JVM scripts (`KAFKA_HEAP_OPTS`), and variables that
Kubernetes sets in each container of a namespace with a service called kafka, such as
`KAFKA_SERVICE_HOST` and `KAFKA_PORT=tcp://10.0.0.1:9092`. They must not keep a broker from
starting, so they cause only a single warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from barnabas.config.broker_keys import BROKER_KEYS, key_of
from barnabas.errors import ConfigError
from barnabas.printable import printable

_PREFIX: Final = "KAFKA_"
_LINK: Final = r"KAFKA_(\w+_)?PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://"
"""Matches a service link of Kubernetes or Docker, even if a config has the same name."""

_SILENT: Final = frozenset({"KAFKA_HOME", "KAFKA_VERSION"})
"""These variables describe a Kafka installation; nobody expects them to have an effect."""

_MOST_NAMED: Final = 20


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in variables that stand for configs; all other variables are ignored.

    `_` stands for a dot, `__` for an underscore, `___` for a hyphen.
    """
    return {
        _config_of(variable): value
        for variable, value in environ.items()
        if variable.startswith(_PREFIX) and _counts(variable, value)
    }


def environment_warning(environ: Mapping[str, str]) -> str | None:
    """Return a warning that lists the variables that start with KAFKA_ but do not stand for a
    config.
    """
    ignored = sorted(
        variable
        for variable, value in environ.items()
        if variable.startswith(_PREFIX) and variable not in _SILENT and not _counts(variable, value)
    )
    if not ignored:
        return None
    named = [f"{printable(variable)}{_hint(variable)}" for variable in ignored[:_MOST_NAMED]]
    if len(ignored) > _MOST_NAMED:
        named.append(f"{len(ignored) - _MOST_NAMED} more")
    return f"{', '.join(named)} in the environment: ignored, because it is not a broker config"


def _counts(variable: str, value: str) -> bool:
    # Kubernetes, and links of Docker, provide a service's addresses in such variables.
    if re.match(_LINK, f"{variable}={value}"):
        return False
    try:
        key_of(_config_of(variable))
    except ConfigError:
        return False
    return True


def _config_of(variable: str) -> str:
    name = variable.removeprefix(_PREFIX).lower()
    name = name.replace("___", "-").replace("__", "\0").replace("_", ".")
    return name.replace("\0", "_")


def _hint(variable: str) -> str:
    """Suggest the variable for the most similar config, in case the name is mistyped."""
    import difflib  # rarely needed at startup

    near = difflib.get_close_matches(_config_of(variable), BROKER_KEYS, n=1, cutoff=0.85)
    if not near:
        return ""
    name = near[0].replace("_", "__").replace("-", "___").replace(".", "_").upper()
    return "" if variable == _PREFIX + name else f" ({_PREFIX}{name}?)"
