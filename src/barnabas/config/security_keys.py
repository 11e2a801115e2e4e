"""All broker configs about security. Loaded on first use: a broker without security needs none."""

from __future__ import annotations

from barnabas.config.authorization_keys import AUTHORIZATION_KEYS
from barnabas.config.key import ConfigKey
from barnabas.config.password_keys import PASSWORD_KEYS
from barnabas.config.sasl_keys import SASL_KEYS
from barnabas.config.tls_keys import TLS_KEYS

SECURITY_KEYS: dict[str, ConfigKey] = {
    **TLS_KEYS,
    **SASL_KEYS,
    **AUTHORIZATION_KEYS,
    **PASSWORD_KEYS,
}
