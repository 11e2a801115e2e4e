"""Broker configs of Kafka 3.9 about passwords among dynamic configs."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_PASSWORDS = (
    ("password.encoder.cipher.algorithm", "string", "AES/CBC/PKCS5Padding", "",
     "Cipher for passwords among dynamic configs."),
    ("password.encoder.iterations", "int", 4096, "[1024,...]", "Rounds of its key derivation."),
    ("password.encoder.key.length", "int", 128, "[8,...]", "Length of its key in bits."),
    ("password.encoder.keyfactory.algorithm", "string", None, "", "Its key derivation."),
    ("password.encoder.old.secret", "password", None, "", "The secret before the last change."),
    ("password.encoder.secret", "password", None, "", "The secret that it starts from."),
)  # fmt: skip

PASSWORD_KEYS: dict[str, ConfigKey] = table(_PASSWORDS)
