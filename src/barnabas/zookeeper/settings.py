"""Reads the settings of the ZooKeeper server: those of `zoo.cfg`, and of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.named_tuple import NamedTuple

DEFAULT_PORT = 2181
JAAS_CONFIG = "java.security.auth.login.config"
"""Java's system property for the file with the users, which is a setting of zoo.cfg here."""
_SUPER_DIGEST = "DigestAuthenticationProvider.superDigest"
_SUPER_PASSWORD = "SASLAuthenticationProvider.superPassword"
_REQUIRE_SASL = "sessionRequireClientSASLAuth"
_SASL_ONLY: tuple[str, ...] = ("sasl",)
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
        ),
        *("standaloneEnabled", "localSessionsEnabled"),
        *("reconfigEnabled", "electionAlg", "maxSessionTimeOut", "clientPortListenBacklog"),
        *("localSessionsUpgradingEnabled", "jaasLoginRenew", "peerType", "leaderServes"),
        *("syncEnabled", "cnxTimeout", "quorumListenOnAllIPs", "globalOutstandingLimit"),
    }
)
_UNMENTIONED_PREFIXES = ("autopurge.", "metricsProvider.")
_INERT_PREFIXES = ("admin.", "quorum.", "fsync.", "multiAddress.")
_SERVER = "server."
_ENSEMBLE = ("group.", "weight.", "dynamicConfigFile")
_TLS = ("secureClientPort", "secureClientPortAddress", "ssl.")
_AUTH_PROVIDER = "authProvider."
_SASL_PROVIDER = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
_LOGIN_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_OLD_REQUIREMENT = "requireClientAuthScheme"

_KNOWN = frozenset(
    {
        *("tickTime", "dataDir", "clientPort", "clientPortAddress", "maxClientCnxns"),
        *("minSessionTimeout", "maxSessionTimeout", "4lw.commands.whitelist"),
        *("extendedTypesEnabled", "znode.container.checkIntervalMs", JAAS_CONFIG),
        *("sasl.serverconfig", _REQUIRE_SASL, "allowSaslFailedClients"),
        *("enforce.auth.enabled", "enforce.auth.schemes", "superUser", _SUPER_DIGEST),
        _SUPER_PASSWORD,
    }
)

WORDS = frozenset(
    {
        *("conf", "cons", "crst", "dirs", "dump", "envi", "isro", "mntr", "ruok", "srst"),
        *("srvr", "stat", "wchc", "wchp", "wchs"),
    }
)
"""The four-letter words that can be answered."""
_ALWAYS = frozenset({"srvr"})  # as in ZooKeeper, whose own scripts need it
DEFAULT_WORDS = frozenset({"conf", "mntr", "ruok", "srvr"})


class LoginSettings(NamedTuple):
    """Contains who may log in, and who has to. It contains secrets."""

    users: Mapping[str, str] = {}
    """The passwords of DIGEST-MD5 by user name."""
    required_schemes: tuple[str, ...] = ()
    """A client needs an identity of one of these schemes. If there are none, it needs no login."""
    super_digest: str = ""
    """The identity `digest` that may do everything, with its hash."""
    super_user: str = ""
    """The user name of `sasl` that may do everything."""
    keeps_failed: bool = False
    """Whether a client whose login has failed stays connected."""

    def __repr__(self) -> str:
        return f"LoginSettings({len(self.users)} users, hidden)"


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
    words: frozenset[str] = DEFAULT_WORDS
    has_ttl: bool = False
    """Whether nodes with a time to live can be created."""
    container_check_ms: int = 60_000
    """The interval of the search for containers and nodes with a time to live to delete."""
    login: LoginSettings = LoginSettings()


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
        _words(properties),
        _is_true(properties, "extendedTypesEnabled"),
        _number(properties, "znode.container.checkIntervalMs", 60_000, least=1),
        _login(properties),
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
    servers = [key for key in properties if key.startswith(_SERVER)]
    # A file that names a single server describes a server on its own, for Java's, too.
    if len(servers) > 1:
        return servers[0]
    return next((key for key in properties if key.startswith((*_ENSEMBLE, *_TLS))), None)


def _check_keys(properties: Mapping[str, str]) -> list[str]:
    """Return warnings about settings without effect. Raises ConfigError."""
    if key := unsupported_key(properties):
        if key.startswith(_TLS):
            raise ConfigError(
                f"{key}: this server has no TLS; remove the setting, or use Apache ZooKeeper"
            )
        raise ConfigError(
            f"{key}: this server runs alone, on one machine; for an ensemble, use Apache ZooKeeper"
        )
    warnings: list[str] = []
    inert: list[str] = []
    for key in properties:
        if key.startswith(_AUTH_PROVIDER):
            if properties[key].strip() != _SASL_PROVIDER:
                raise ConfigError(f"{key}: the only provider that can be set is {_SASL_PROVIDER}")
        elif key == _OLD_REQUIREMENT:
            warnings.append(
                f"{key} has no effect, as in ZooKeeper; use sessionRequireClientSASLAuth=true"
            )
        elif key == "skipACL":
            warnings.append("skipACL has no effect here: access rights are always checked")
        elif key.startswith(_SERVER):
            warnings.append(_about_only_server(key, properties))
        elif key in _INERT or key.startswith(_INERT_PREFIXES):
            inert.append(key)
        elif key not in _KNOWN and not key.startswith(_UNMENTIONED_PREFIXES):
            warnings.append(_about_unknown(key))
    if inert:
        verb = "has" if len(inert) == 1 else "have"
        warnings.insert(0, f"{', '.join(inert)} {verb} no effect here")
    return warnings


def _about_only_server(key: str, properties: Mapping[str, str]) -> str:
    """Return a warning about the line of an ensemble's only server."""
    warning = f"{key} has no effect here, because it names the only server"
    if ";" in properties[key] and "clientPort" not in properties:
        warning += "; set the port for clients in clientPort"
    return warning


def _about_unknown(key: str) -> str:
    from barnabas.similar_names import did_you_mean  # rarely used

    meant = did_you_mean(key, _KNOWN | _INERT)
    return f"{key!r} is not a known setting and has no effect{'; ' * bool(meant)}{meant}"


def _words(properties: Mapping[str, str]) -> frozenset[str]:
    text = properties.get("4lw.commands.whitelist")
    if text is None:
        return DEFAULT_WORDS
    listed = frozenset(each.strip() for each in text.split(","))
    return WORDS if "*" in listed else (listed | _ALWAYS) & WORDS


def _login(properties: Mapping[str, str]) -> LoginSettings:
    users: dict[str, str] = {}
    file = properties.get(JAAS_CONFIG, "").strip()
    if file:
        section = properties.get("sasl.serverconfig", "").strip() or "Server"
        users = _load_users(Path(file).expanduser(), section)
    if _SUPER_PASSWORD in properties and "super" in users:
        users["super"] = properties[_SUPER_PASSWORD]
    return LoginSettings(
        users,
        _required_schemes(properties, bool(users)),
        properties.get(_SUPER_DIGEST, "").strip(),
        properties.get("superUser", "").strip(),
        _is_true(properties, "allowSaslFailedClients"),
    )


def _load_users(path: Path, section: str) -> dict[str, str]:
    """Return the passwords by user name. Errors contain no value of the file."""
    from barnabas.security.jaas import parse_section

    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"{JAAS_CONFIG}: cannot read {path}: {reason}") from None
    users: dict[str, str] = {}
    for module in parse_section(JAAS_CONFIG, text, section):
        if module.name != _LOGIN_MODULE:
            raise ConfigError(
                f"{JAAS_CONFIG}: {path}: the only login module for {section} is {_LOGIN_MODULE}"
            )
        users |= module.users
    return users


def _required_schemes(properties: Mapping[str, str], has_users: bool) -> tuple[str, ...]:
    """Return the schemes of which a client needs one."""
    if _is_true(properties, _REQUIRE_SASL):
        key, schemes = _REQUIRE_SASL, _SASL_ONLY
    elif _is_true(properties, "enforce.auth.enabled"):
        key = "enforce.auth.schemes"
        text = properties.get(key, "")
        schemes = tuple(each.strip() for each in text.split(",") if each.strip())
        if not schemes:
            raise ConfigError(f"{key}: it is not set, but enforce.auth.enabled is true")
    else:
        return ()
    for each in schemes:
        if each not in ("digest", "ip", "sasl"):
            raise ConfigError(f"{key}: {each!r} is none of digest, ip and sasl")
    if schemes == _SASL_ONLY and not has_users:
        raise ConfigError(
            f"{key}: no client could log in; name a file with users in {JAAS_CONFIG}, or use "
            "--jaas-config FILE"
        )
    return schemes


def _is_true(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").strip().lower() == "true"


def _number(properties: Mapping[str, str], key: str, default: int, least: int = -1) -> int:
    text = properties.get(key, str(default)).strip()
    try:
        number = int(text)
    except ValueError:
        raise ConfigError(f"{key}: {text!r} is not a number") from None
    if number < least:
        raise ConfigError(f"{key}: {number} is less than {least}")
    return number
