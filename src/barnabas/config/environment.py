"""Reads settings from environment variables: as in Kafka's image, `KAFKA_LOG_DIRS` sets `log.dirs`.

A variable is used only if there is a config for it. Many other variables start with `KAFKA_`:
`KAFKA_BOOTSTRAP_SERVERS` for a client program, settings for the scripts that start Kafka's JVM
(`KAFKA_HEAP_OPTS`), and variables that Kubernetes sets in every container if there is a service
called kafka in the namespace, such as `KAFKA_SERVICE_HOST` and `KAFKA_PORT=tcp://10.0.0.1:9092`. A
broker must start even if they are set, so they only cause one warning for all of them.
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
"""Matches a variable of a Kubernetes service or a Docker link, even if a config has that name."""

_SILENT: Final = frozenset({"KAFKA_HOME", "KAFKA_VERSION"})
"""Variables that describe a Kafka installation. No warning is needed for them, because nobody
expects a broker to use them.
"""

_MOST_NAMED: Final = 20


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in environment variables.

    Variables for which there is no config are ignored.

    In the name of a variable, `_` stands for a dot, `__` for an underscore, and `___` for a hyphen.
    """
    return {
        _config_of(variable): value
        for variable, value in environ.items()
        if variable.startswith(_PREFIX) and _counts(variable, value)
    }


def environment_warning(environ: Mapping[str, str]) -> str | None:
    """Return a warning that lists the KAFKA_ variables for which there is no config."""
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
    # Kubernetes, and Docker for linked containers, set such variables to the address of a service.
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
    """Suggest the variable with the most similar name, in case of a typing error."""
    import difflib  # rarely needed at startup

    near = difflib.get_close_matches(_config_of(variable), BROKER_KEYS, n=1, cutoff=0.85)
    if not near:
        return ""
    name = near[0].replace("_", "__").replace("-", "___").replace(".", "_").upper()
    return "" if variable == _PREFIX + name else f" ({_PREFIX}{name}?)"
