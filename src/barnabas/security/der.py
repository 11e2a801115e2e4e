"""Parses those parts of a DER certificate that contain its names and its expiry (RFC 5280)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

SEQUENCE, SET, OID, OCTETS = 0x30, 0x31, 0x06, 0x04
_EXPLICIT_VERSION, _EXPLICIT_EXTENSIONS = 0xA0, 0xA3
_ALTERNATIVE_NAMES = "2.5.29.17"
_UTC_TIME = 0x17
_VALIDITY = 3
_SUBJECT = 4  # after serial number, algorithm, issuer and validity


class Element(NamedTuple):
    """An element, with its content."""

    tag: int
    content: bytes
    whole: bytes


def subject_element(certificate: bytes) -> Element:
    """Return the subject of a certificate. Raises ValueError if the bytes are not a certificate."""
    fields = _fields(certificate)
    if len(fields) <= _SUBJECT or fields[_SUBJECT].tag != SEQUENCE:
        raise ValueError("the certificate has no subject")
    return fields[_SUBJECT]


class End(NamedTuple):
    """When a certificate expires."""

    at_s: int  # seconds since 1970
    text: str  # 2027-11-26 14:50 UTC


def end_of(certificate: bytes) -> End:
    """Return when a certificate expires. Raises ValueError."""
    fields = _fields(certificate)
    if len(fields) <= _VALIDITY or fields[_VALIDITY].tag != SEQUENCE:
        raise ValueError("the certificate has no validity period")
    *_, end = elements(fields[_VALIDITY].content)
    # In RFC 5280, two-digit years are from 1950 to 2049; strptime reads them as 1969 to 2068.
    text = end.content.decode("ascii", "replace")
    if end.tag == _UTC_TIME:
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    end_at = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return End(int(end_at.timestamp()), f"{end_at:%Y-%m-%d %H:%M} UTC")


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """Return the alternative names of the subject.

    They are not decoded, because they are only compared.
    """
    for field in _fields(certificate):
        if field.tag != _EXPLICIT_EXTENSIONS:
            continue
        for extension in elements(_only(field.content).content):
            oid, *_, value = elements(extension.content)
            if oid.tag == OID and oid_text(oid.content) == _ALTERNATIVE_NAMES:
                return frozenset(each.whole for each in elements(_only(value.content).content))
    return frozenset()


def elements(content: bytes) -> Iterator[Element]:
    """Yield the elements one after another. Raises ValueError if the last one is incomplete."""
    position = 0
    while position < len(content):
        start = position
        if position + 2 > len(content):
            raise ValueError("the certificate ends in the middle of an element")
        tag, size = content[position], content[position + 1]
        position += 2
        # In the long form, the low bits contain the number of bytes that encode the length.
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(content[position : position + count], "big")
            position += count
        end = position + size
        if end > len(content):
            raise ValueError("the certificate ends in the middle of an element")
        yield Element(tag, content[position:end], content[start:end])
        position = end


def oid_text(oid: bytes) -> str:
    """Return the text of an object identifier, such as 2.5.4.3."""
    if not oid:
        raise ValueError("an object identifier is empty")
    arcs: list[int] = []
    value = 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(value)
            value = 0
    # X.690: the first two numbers are encoded together as 40 * first + second. The first is at most
    # 2. If it is 0 or 1, the second is at most 39.
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _fields(certificate: bytes) -> list[Element]:
    """Return the fields of a certificate, except for its version."""
    fields = list(elements(_only(_only(certificate).content).content))
    # The version field is missing if the version is 1, the default.
    return fields[1:] if fields and fields[0].tag == _EXPLICIT_VERSION else fields


def _only(content: bytes) -> Element:
    first = next(elements(content), None)
    if first is None or first.tag != SEQUENCE:
        raise ValueError("this is not a DER certificate")
    return first
