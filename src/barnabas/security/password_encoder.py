"""Encrypts passwords in dynamic configs, in the text format that Kafka's PasswordEncoder uses.

    keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,
    salt:...,iterations:4096,initializationVector:...,encryptedPassword:...,passwordLength:6

A password is encrypted with a key that is derived from `password.encoder.secret`. The algorithms
are stored together with the password, so it can still be decrypted after the settings have changed.
"""

from __future__ import annotations

import binascii
import hashlib
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas.extras import install_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

_HASHES: Final[Mapping[str, str]] = {
    f"PBKDF2WithHmacSHA{bits}": f"sha{bits}" for bits in (1, 224, 256, 384, 512)
}
_CBC, _GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"
_KEY_BITS: Final = (128, 192, 256)
_BLOCK, _NONCE, _SALT = 16, 12, 256  # in bytes
_TAG_BITS: Final = 128
_MOST_ITERATIONS: Final = 10_000_000


class Encryption(NamedTuple):
    """The `password.encoder.*` settings, which are used to encrypt new passwords."""

    keyfactory_algorithm: str = "PBKDF2WithHmacSHA512"
    cipher_algorithm: str = _CBC
    key_length: int = 128
    iterations: int = 4096


class PasswordEncoder:
    """Encodes and decodes passwords with the same secret."""

    def __init__(self, secret: str, encryption: Encryption | None = None) -> None:
        """Create an encoder.

        Raises ConfigError if an algorithm is not available or the library is missing.
        """
        self._secret = secret.encode()
        self._encryption = encryption or Encryption()
        _check(self._encryption)

    def encode(self, password: str) -> str:
        """Encrypt a password. The salt and the initialization vector are new each time."""
        kind = self._encryption
        salt = secrets.token_bytes(_SALT)
        is_gcm = kind.cipher_algorithm == _GCM
        vector = secrets.token_bytes(_NONCE if is_gcm else _BLOCK)
        encryptor = self._cipher(kind, salt, vector).encryptor()
        plain = password.encode()
        sealed = encryptor.update(plain if is_gcm else _pad(plain)) + encryptor.finalize()
        parts = {
            "keyFactoryAlgorithm": kind.keyfactory_algorithm,
            "cipherAlgorithm": kind.cipher_algorithm,
            "keyLength": str(kind.key_length),
            "salt": b64encode(salt).decode(),
            "iterations": str(kind.iterations),
            "passwordLength": str(_java_length(password)),
            "initializationVector": b64encode(vector).decode(),
        }
        if is_gcm:
            sealed += encryptor.tag  # type: ignore[attr-defined]  # of GCM's encryptors
            parts["authenticationTagLength"] = str(_TAG_BITS)
        parts["encryptedPassword"] = b64encode(sealed).decode()
        return ",".join(f"{name}:{value}" for name, value in parts.items())

    def decode(self, text: str) -> str:
        """Decrypt a password. Raises ValueError if it was not encrypted with this secret."""
        parts = dict(part.strip().rpartition(":")[::2] for part in text.split(","))
        try:
            kind = Encryption(
                parts["keyFactoryAlgorithm"],
                parts["cipherAlgorithm"],
                int(parts["keyLength"]),
                int(parts["iterations"]),
            )
            salt, vector, sealed = (
                b64decode(parts[name], validate=True)
                for name in ("salt", "initializationVector", "encryptedPassword")
            )
            length = int(parts["passwordLength"])
        except (KeyError, ValueError, binascii.Error):
            raise ValueError("it does not have the format of an encrypted password") from None
        try:
            _check(kind)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        # The algorithms named in the text are used, not those in the settings.
        password = self._open(kind, salt, vector, sealed)
        # With CBC, about one in 256 wrong keys yields valid padding. The length check detects
        # nearly all of them.
        if _java_length(password) != length:
            raise _wrong_secret()
        return password

    def _open(self, kind: Encryption, salt: bytes, vector: bytes, sealed: bytes) -> str:
        from cryptography.exceptions import InvalidTag

        tag = b""
        if kind.cipher_algorithm == _GCM:
            sealed, tag = sealed[: -_TAG_BITS // 8], sealed[-_TAG_BITS // 8 :]
        try:
            decryptor = self._cipher(kind, salt, vector, tag).decryptor()
            plain = decryptor.update(sealed) + decryptor.finalize()
            return (plain if tag else _unpad(plain)).decode()
        except (InvalidTag, ValueError):
            raise _wrong_secret() from None

    def _cipher(
        self, kind: Encryption, salt: bytes, vector: bytes, tag: bytes = b""
    ) -> Cipher[modes.CBC | modes.GCM]:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        key = hashlib.pbkdf2_hmac(
            _HASHES[kind.keyfactory_algorithm],
            self._secret,
            salt,
            kind.iterations,
            kind.key_length // 8,
        )
        if kind.cipher_algorithm == _GCM:
            return Cipher(algorithms.AES(key), modes.GCM(vector, tag or None))
        return Cipher(algorithms.AES(key), modes.CBC(vector))

    def __repr__(self) -> str:
        return "PasswordEncoder([hidden])"


def _check(encryption: Encryption) -> None:
    """Raise ConfigError if a setting is invalid. The error names the setting."""
    key, cipher, bits, iterations = encryption
    prefix = "password.encoder"
    if key not in _HASHES:
        raise _not_among(f"{prefix}.keyfactory.algorithm", key, tuple(_HASHES))
    if cipher not in (_CBC, _GCM):
        raise _not_among(f"{prefix}.cipher.algorithm", cipher, (_CBC, _GCM))
    if bits not in _KEY_BITS:
        raise _not_among(f"{prefix}.key.length", bits, _KEY_BITS)
    # The number may come from the tree, and a large number would block the broker.
    if not 1 <= iterations <= _MOST_ITERATIONS:
        raise ConfigError(f"{prefix}.iterations: {iterations} is above {_MOST_ITERATIONS}")
    from importlib.util import find_spec

    if find_spec("cryptography") is None:
        raise ConfigError(
            f"{prefix}.secret needs a library: {install_line('security', ['cryptography'])}"
        )


def _wrong_secret() -> ValueError:
    return ValueError("it is damaged, or it was encrypted with another password.encoder.secret")


def _not_among(setting: str, value: object, known: tuple[object, ...]) -> ConfigError:
    return ConfigError(f"{setting}: {value} is not one of {', '.join(map(str, known))}")


def _java_length(text: str) -> int:
    # Java counts UTF-16 code units.
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _pad(plain: bytes) -> bytes:
    missing = _BLOCK - len(plain) % _BLOCK
    return plain + bytes([missing]) * missing


def _unpad(padded: bytes) -> bytes:
    missing = padded[-1] if padded else 0
    if not 1 <= missing <= _BLOCK or padded[-missing:] != bytes([missing]) * missing:
        raise ValueError("the padding is invalid")
    return padded[:-missing]
