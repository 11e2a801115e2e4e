"""Finds PEM blocks in a text, even with text around them or spaces in place of line ends."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from textwrap import wrap
from typing import NamedTuple

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE_CHARACTERS = 64

LIFE_DAYS = 397
"""The longest time for which clients accept a server's certificate."""

CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
_KEY = "PRIVATE KEY"


class PemBlock(NamedTuple):
    """The label of a PEM block, and its text with normal line ends."""

    label: str
    text: str

    @property
    def is_certificate(self) -> bool:
        return self.label in CERTIFICATES

    @property
    def is_private_key(self) -> bool:
        return self.label.endswith(_KEY)


def pem_blocks(text: str) -> list[PemBlock]:
    """Return all blocks in a text, in their order.

    Raises ValueError if a block is not valid base64.
    """
    return [PemBlock(found[1], _proper(found[1], found[2])) for found in _BLOCK.finditer(text)]


def pem_of(label: str, content: bytes) -> str:
    """Return a block that contains these bytes (DER)."""
    lines = wrap(b64encode(content).decode(), _LINE_CHARACTERS)
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def der_of(block: PemBlock) -> bytes:
    """Return the bytes in a block that has no header lines."""
    return b64decode("".join(block.text.splitlines()[1:-1]))


def _proper(label: str, body: str) -> str:
    if ":" in body:  # header lines, as in encrypted keys in OpenSSL's older format
        return f"-----BEGIN {label}-----{body}-----END {label}-----\n"
    try:
        content = b64decode("".join(body.split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"the PEM block {label} is damaged: {error}") from None
    return pem_of(label, content)
