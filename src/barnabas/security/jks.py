"""Reads Java key stores in the format JKS, using only Python's standard library.

    magic FEEDFEED | version 1 or 2 | count | entry ... | SHA-1 of password, phrase and the rest
    entry: 1 | alias | time | length, protected key | count, certificate ...
           2 | alias | time | certificate
    certificate: its type (version 2 only) | length, DER

Numbers have four bytes, times have eight bytes, and a string starts with its length in two bytes.
Keys are protected by Sun's own algorithm: the result is a salt, the key XORed with a chain of SHA-1
digests that starts with the salt, and a digest of the plain key. The algorithm provides little
protection against password guessing, and since Java 9, the default format is PKCS12. This module
can only read JKS.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from barnabas.security.der import OCTETS, OID, SEQUENCE, Element, elements, oid_text

MAGIC = b"\xfe\xed\xfe\xed"

_PHRASE = b"Mighty Aphrodite"  # part of the digest of every store
_SUN_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_KEY, _TRUSTED = 1, 2
_DIGEST_BYTES = hashlib.sha1(usedforsecurity=False).digest_size
_VERSIONS = (1, 2)


class JksKey(NamedTuple):
    """A private key as stored, and its chain in DER, which starts with its own certificate."""

    protected: bytes
    chain: list[bytes]

    def plain(self, password: str) -> bytes:
        """Return the key as PKCS8 in DER. Raises ValueError if it is damaged or the password is
        wrong.
        """
        blob = _protected_octets(self.protected)
        salt, hidden, check = (
            blob[:_DIGEST_BYTES],
            blob[_DIGEST_BYTES:-_DIGEST_BYTES],
            blob[-_DIGEST_BYTES:],
        )
        secret = password.encode("utf-16-be")
        stream, last = bytearray(), salt
        # Each digest is computed from the password and the previous digest, the first one from the
        # password and the salt.
        while len(stream) < len(hidden):
            last = _digest(secret, last)
            stream += last
        plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
        if not hmac.compare_digest(_digest(secret, plain), check):
            raise ValueError("the key's password is wrong (ssl.key.password)")
        return plain


class JksStore(NamedTuple):
    """The keys in a store and its trusted certificates in DER, in the order of the store."""

    keys: list[JksKey]
    trusted: list[bytes]


def read_jks(content: bytes, password: str) -> JksStore:
    """Return the entries of a store.

    As in Java, the digest is checked only if there is a password. Raises ValueError.
    """
    reader = _Reader(content[:-_DIGEST_BYTES])
    reader.skip(len(MAGIC))
    version = reader.number()
    if version not in _VERSIONS:
        raise ValueError(f"JKS store version {version} is not supported; only 1 and 2 are")
    # Java also reads a truststore without its password, because certificates are not secret.
    if password:
        found = _digest(password.encode("utf-16-be"), _PHRASE + content[:-_DIGEST_BYTES])
        if not hmac.compare_digest(found, content[-_DIGEST_BYTES:]):
            raise ValueError("the store's password is wrong, or the store is damaged")
    store = JksStore([], [])
    for _ in range(reader.number()):
        kind = reader.number()
        reader.text()  # the alias
        reader.skip(8)  # the time
        if kind == _KEY:
            protected = reader.octets()
            chain = [reader.certificate(version) for _ in range(reader.number())]
            store.keys.append(JksKey(protected, chain))
        elif kind == _TRUSTED:
            store.trusted.append(reader.certificate(version))
        else:
            raise ValueError(f"the JKS store is damaged: an entry has the unknown kind {kind}")
    return store


class _Reader:
    """Reads a store from start to end. Each method raises ValueError if the store is too short."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def number(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def text(self) -> bytes:
        return self._take(int.from_bytes(self._take(2), "big"))

    def octets(self) -> bytes:
        return self._take(self.number())

    def skip(self, size: int) -> None:
        self._take(size)

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()  # the type, which is always X.509
        return self.octets()

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._content):
            raise ValueError("the JKS store is damaged: it ends in the middle of an entry")
        taken = self._content[self._position : end]
        self._position = end
        return taken


def _protected_octets(der: bytes) -> bytes:
    """Return the salt, the protected key and the digest in an EncryptedPrivateKeyInfo (PKCS8)."""
    try:
        algorithm, octets = elements(_single(der, SEQUENCE).content)
        oid = next(elements(algorithm.content))
    except (ValueError, StopIteration):
        raise ValueError("the JKS store is damaged: a key is not PKCS8") from None
    if oid.tag != OID or oid_text(oid.content) != _SUN_KEY_PROTECTOR:
        raise ValueError("the key's protection is not that of JKS stores")
    if octets.tag != OCTETS or len(octets.content) <= 2 * _DIGEST_BYTES:
        raise ValueError("the JKS store is damaged: a key is too short")
    return octets.content


def _single(content: bytes, tag: int) -> Element:
    (element,) = elements(content)
    if element.tag != tag:
        raise ValueError("another element")
    return element


def _digest(secret: bytes, content: bytes) -> bytes:
    return hashlib.sha1(secret + content, usedforsecurity=False).digest()
