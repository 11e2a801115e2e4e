"""The subject of a certificate as Java's X500Principal.getName() writes it (RFC 2253).

    CN=alice,OU=Sales,O=Acme\\, Inc.,C=DE

The specific part comes first. Attributes that RFC 2253 has no word for stand as their number and
the hexadecimal DER of their value, so that rules and ACLs written for Kafka match.
"""

from __future__ import annotations

from barnabas.security.der import OID, SET, dotted, elements, subject_element

_UNIVERSAL_STRING, _BMP_STRING = 0x1C, 0x1E
_STRINGS = (0x0C, 0x13, 0x14, 0x16, 0x1B, _UNIVERSAL_STRING, _BMP_STRING)
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, and the two above."""

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED = ',=+<>#;"\\'
_BLANKS = " \r"


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER. Raises ValueError for what is none."""
    subject = elements(subject_element(certificate).content)
    return ",".join(reversed([_relative_name(each.content) for each in subject if each.tag == SET]))


def _relative_name(content: bytes) -> str:
    """One step of the name, usually of one attribute."""
    return "+".join(_attribute(each.content) for each in elements(content))


def _attribute(content: bytes) -> str:
    (kind, oid, _), (tag, value, whole) = elements(content)
    if kind != OID:
        raise ValueError("an attribute of the certificate's subject has no type")
    number = dotted(oid)
    keyword = _KEYWORDS.get(number)
    if keyword is None or tag not in _STRINGS:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join(
        f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in text
    )
    inner = escaped.strip(_BLANKS)
    if not inner:
        return "".join(f"\\{each}" for each in escaped)
    before, _, after = escaped.partition(inner)
    return f"{_each_escaped(before)}{inner}{_each_escaped(after)}"


def _each_escaped(blanks: str) -> str:
    return "".join(f"\\{each}" for each in blanks)
