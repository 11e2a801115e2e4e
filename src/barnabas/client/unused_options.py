"""Handles the options of Kafka's Java clients that these clients do not need.

A properties file written for Kafka can be passed unchanged. An option is accepted with a warning if
it only tunes something that these clients do in a different way. An option is rejected if it would
change behaviour that users rely on, above all security, unless its value matches the behaviour of
these clients.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from barnabas.client.security.config import SecurityConfig
from barnabas.errors import ConfigError

_log = logging.getLogger(__name__)

TUNING: Final = frozenset(
    {
        "auto_include_jmx_reporter",
        "client_dns_lookup",
        "compression_gzip_level",
        "compression_lz4_level",
        "compression_zstd_level",
        "config_providers",
        "connections_max_idle_ms",
        "enable_metrics_push",
        "metadata_recovery_strategy",
        "metadata_recovery_rebootstrap_trigger_ms",
        "metric_reporters",
        "metrics_num_samples",
        "metrics_recording_level",
        "metrics_sample_window_ms",
        "partitioner_adaptive_partitioning_enable",
        "partitioner_availability_timeout_ms",
        "receive_buffer_bytes",
        "sasl_login_connect_timeout_ms",
        "sasl_login_read_timeout_ms",
        "sasl_login_retry_backoff_max_ms",
        "sasl_login_retry_backoff_ms",
        "send_buffer_bytes",
        "socket_connection_setup_timeout_max_ms",
    }
)
_ONLY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group_protocol": "classic",
        "partitioner_ignore_keys": "false",
        "ssl_keymanager_algorithm": "SunX509",
        "ssl_trustmanager_algorithm": "PKIX",
    }
)
"""The only value that is accepted for each option, which is Kafka's default."""

_TRUST: Final = "set ssl.truststore.location, and ssl.truststore.type=PEM"
_OWN: Final = (
    "set ssl.keystore.location to a file with key and certificate, and ssl.keystore.type=PEM"
)
_INSTEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ssl_ca_location": _TRUST,
        "ssl_cafile": _TRUST,
        "ssl_certfile": _OWN,
        "ssl_certificate_location": _OWN,
        "ssl_check_hostname": "set ssl.endpoint.identification.algorithm, https or nothing",
        "ssl_ciphers": "set ssl.cipher.suites",
        "ssl_context": "set ssl.truststore.* and ssl.keystore.*",
        "ssl_key_location": _OWN,
        "ssl_keyfile": _OWN,
    }
)
"""Maps option names used by other clients to Kafka's names for the same options."""

_TOKENS_BY_JAVA: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
"""The classes replaced by the option `sasl.oauthbearer.token.endpoint.url` in these clients."""

SECURITY_PREFIXES: Final = ("sasl_", "ssl_", "security_")


def without_unused(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return `options` (names with underscores) without the options that have no effect here.

    Raises ConfigError if an option requires behaviour that is not supported.
    """
    used, ignored = {}, []
    for name, value in options.items():
        is_used = name in SecurityConfig._fields
        if is_used or not (name in TUNING or name in _ONLY or name.startswith(SECURITY_PREFIXES)):
            used[name] = value
            continue
        if name not in TUNING:
            _check(name, value)
        ignored.append(name.replace("_", "."))
    if ignored:
        _log.warning("options that have no effect in this client: %s", ", ".join(sorted(ignored)))
    return used


def _check(name: str, value: Any) -> None:
    # Unset, empty or set to Kafka's default, the option requires nothing unsupported.
    given = "" if value is None else str(value).strip()
    if not given or given.lower() == _ONLY.get(name, "").lower():
        return
    if name == "sasl_login_callback_handler_class" and given in _TOKENS_BY_JAVA:
        return
    kafka_name = name.replace("_", ".")
    shown = "" if "password" in name or "jaas" in name or name.endswith("_key") else f": {value!r}"
    if name.startswith(SECURITY_PREFIXES):
        raise ConfigError(
            f"{kafka_name}{shown} is not supported by this client: "
            f"{_INSTEAD.get(name, 'remove the option')}"
        )
    raise ConfigError(f"{kafka_name}{shown} is not supported; only {_ONLY[name]} is")
