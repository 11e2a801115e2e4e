"""Reads the settings of the ZooKeeper server: those of `zoo.cfg`, and of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.named_tuple import NamedTuple

DEFAULT_PORT = 2181
_LEAST_TICKS, _MOST_TICKS = 2, 20
_PORT_LIMIT = 65_535

# These have a meaning only for Java's server, or none on a single machine.
_INERT = frozenset(
    {
        *(
            "dataLogDir",
            "initLimit",
            "syncLimit",
            "preAllocSize",
            "snapCount",
            "admin.enableServer",
        ),
        *("admin.serverPort", "admin.serverAddress", "standaloneEnabled", "4lw.commands.whitelist"),
        *("reconfigEnabled", "electionAlg", "maxSessionTimeOut", "clientPortListenBacklog"),
    }
)
_INERT_PREFIXES = ("autopurge.", "metricsProvider.")
_ENSEMBLE = ("server.", "group.", "weight.", "dynamicConfigFile")
_SECURITY = ("secureClientPort", "secureClientPortAddress", "authProvider.", "ssl.")


class ZooKeeperSettings(NamedTuple):
    """The settings of a server."""

    data_dir: Path
    port: int = DEFAULT_PORT
    host: str = "127.0.0.1"
    tick_ms: int = 2000
    max_connections: int = 60
    """Connections per address; 0 is unlimited."""
    min_timeout_ms: int = 2000 * _LEAST_TICKS
    max_timeout_ms: int = 2000 * _MOST_TICKS


def settings_from(
    properties: Mapping[str, str], *, port: int | None, host: str | None, data_dir: str | None
) -> tuple[ZooKeeperSettings, list[str]]:
    """Return the settings with warnings. Arguments that are not None override the properties.

    Raises ConfigError.
    """
    warnings = _check_keys(properties)
    tick_ms = _number(properties, "tickTime", 2000, least=1)
    least_ms = _number(properties, "minSessionTimeout", -1)
    most_ms = _number(properties, "maxSessionTimeout", -1)
    directory = data_dir or properties.get("dataDir", "").strip()
    if not directory:
        raise ConfigError("dataDir: it is not set; set it in zoo.cfg, or use --data-dir DIR")
    found = ZooKeeperSettings(
        Path(directory).expanduser(),
        _number(properties, "clientPort", DEFAULT_PORT) if port is None else port,
        host or properties.get("clientPortAddress", "").strip() or "127.0.0.1",
        tick_ms,
        _number(properties, "maxClientCnxns", 60, least=0),
        # In ZooKeeper, -1 means the default.
        tick_ms * _LEAST_TICKS if least_ms == -1 else least_ms,
        tick_ms * _MOST_TICKS if most_ms == -1 else most_ms,
    )
    if not 0 <= found.port <= _PORT_LIMIT:
        raise ConfigError(f"clientPort: {found.port} is not a port, which is 0 to {_PORT_LIMIT}")
    if found.min_timeout_ms > found.max_timeout_ms:
        raise ConfigError(
            f"minSessionTimeout: {found.min_timeout_ms} is greater than maxSessionTimeout "
            f"({found.max_timeout_ms})"
        )
    return found, warnings


def unsupported_key(properties: Mapping[str, str]) -> str | None:
    """Return the first setting for which only Apache ZooKeeper will do, or None."""
    return next((key for key in properties if key.startswith((*_ENSEMBLE, *_SECURITY))), None)


def _check_keys(properties: Mapping[str, str]) -> list[str]:
    known = {
        *("tickTime", "dataDir", "clientPort", "clientPortAddress", "maxClientCnxns"),
        *("minSessionTimeout", "maxSessionTimeout"),
    }
    warnings = []
    for key in properties:
        if key.startswith(_ENSEMBLE):
            raise ConfigError(
                f"{key}: this server runs alone, on one machine; for an ensemble, use Apache "
                "ZooKeeper"
            )
        if key.startswith(_SECURITY):
            raise ConfigError(
                f"{key}: this server has neither TLS nor login; remove the setting, or use Apache "
                "ZooKeeper"
            )
        if key in known or key.startswith(_INERT_PREFIXES):
            continue
        effect = "has no effect here" if key in _INERT else "is unknown, and is ignored"
        warnings.append(f"{key} {effect}")
    return warnings


def _number(properties: Mapping[str, str], key: str, default: int, least: int = -1) -> int:
    text = properties.get(key, str(default)).strip()
    try:
        number = int(text)
    except ValueError:
        raise ConfigError(f"{key}: {text!r} is not a number") from None
    if number < least:
        raise ConfigError(f"{key}: {number} is less than {least}")
    return number
