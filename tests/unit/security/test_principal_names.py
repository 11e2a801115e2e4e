"""SE-2: subjects are written as Java's X500Principal.getName() writes them, and
`ssl.principal.mapping.rules` apply as in Kafka's SslPrincipalMapper.

The expected subjects are what Java 17 and 21 print for these certificates.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from barnabas.errors import ConfigError
from barnabas.security.principal_names import NoRuleMatches, PrincipalNames, subject_of

ALICE = "CN=Alice,OU=Sales,O=Acme,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", ALICE),
        ("DEFAULT", ALICE),
        (r"RULE:^CN=(.*?),.*$/$1/", "Alice"),
        (r"RULE:^CN=(.*?),.*$/$1/L", "alice"),
        (r"RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "ALICE@SALES"),
        (r"RULE:^CN=(.*?),OU=None.*$/$1/, RULE:^CN=(.*?),.*$/$1-second/, DEFAULT", "Alice-second"),
        (r"RULE:^OU=.*$/never/,DEFAULT", ALICE),
        (r"RULE:^CN=(?<who>\w+),.*$/${who}/", "Alice"),
        (r"RULE:^.*O=(.*?),C=(.*)$/$1\/$2\$1/", "Acme/DE$1"),
        (r"RULE:^CN=(.*?),.*$/$1$2/", "Alice$2"),
        (r"RULE:^CN=(.*?),.*$/$12/", "Alice2"),
        (r"RULE:^.*$/x\.y/", "x.y"),
        (r"RULE:.*/x/", "xx"),  # as Java's replaceAll, which also matches the empty rest
    ],
)
def test_se_2_the_first_rule_that_matches_decides(rules: str, name: str) -> None:
    assert PrincipalNames(rules).name_of(ALICE) == name


def test_se_2_a_name_without_a_rule_is_nobody() -> None:
    with pytest.raises(NoRuleMatches, match="Alice"):
        PrincipalNames(r"RULE:^OU=(.*)$/$1/").name_of(ALICE)


def test_se_2_a_rule_is_for_the_whole_name() -> None:
    with pytest.raises(NoRuleMatches):
        PrincipalNames(r"RULE:CN=Alice/alice/").name_of(ALICE)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ("default", "does not start with DEFAULT"),
        ("RULE:^CN=(.*)$", "does not start with DEFAULT"),
        ("RULE:^CN=(.*)$/$1/X", "does not start with DEFAULT"),
        ("RULE:^CN=(.*)$/$1/L/U", "does not start with DEFAULT"),
        ("RULE:^CN=(.*$/$1/", "is not a regular expression"),
        ("DEFAULT RULE:a/b/", "does not start with DEFAULT"),
    ],
)
def test_se_2_a_wrong_rule_is_refused_with_its_text(rules: str, says: str) -> None:
    with pytest.raises(ConfigError, match=f"ssl.principal.mapping.rules: .*{says}"):
        PrincipalNames(rules)


def certificate(name: x509.Name) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ([("CN", "alice")], "CN=alice"),
        ([("C", "DE"), ("O", "Acme"), ("OU", "Sales"), ("CN", "a")], "CN=a,OU=Sales,O=Acme,C=DE"),
        ([("O", 'Acme, "Inc" <x>;y=z+w\\v')], 'O=Acme\\, \\"Inc\\" \\<x\\>\\;y\\=z\\+w\\\\v'),
        ([("OU", "#hash"), ("CN", " lead and trail  ")], "CN=\\ lead and trail\\ \\ ,OU=\\#hash"),
        ([("CN", "   ")], "CN=\\ \\ \\ "),
        ([("CN", "Jürgen 日本")], "CN=Jürgen 日本"),
        ([("E", "a@b.c"), ("CN", "x")], "CN=x,1.2.840.113549.1.9.1=#16056140622e63"),
        ([("DC", "com"), ("DC", "ex"), ("UID", "u")], "UID=u,DC=ex,DC=com"),
        ([("T", "Dr"), ("STREET", "Main St 1")], "STREET=Main St 1,2.5.4.12=#0c024472"),
        ([], ""),
    ],
)
def test_se_2_a_subject_reads_as_in_java(attributes: list[tuple[str, str]], text: str) -> None:
    kinds = {
        "CN": NameOID.COMMON_NAME,
        "C": NameOID.COUNTRY_NAME,
        "O": NameOID.ORGANIZATION_NAME,
        "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
        "DC": NameOID.DOMAIN_COMPONENT,
        "UID": NameOID.USER_ID,
        "E": NameOID.EMAIL_ADDRESS,
        "T": NameOID.TITLE,
        "STREET": NameOID.STREET_ADDRESS,
    }
    name = x509.Name([x509.NameAttribute(kinds[kind], value) for kind, value in attributes])
    assert subject_of(certificate(name)) == text


def test_se_2_attributes_of_one_step_stay_together() -> None:
    step = x509.RelativeDistinguishedName(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "alice"),
            x509.NameAttribute(NameOID.USER_ID, "7"),
        ]
    )
    assert subject_of(certificate(x509.Name([step]))) == "CN=alice+UID=7"


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x82\xff\xff", b"GET / HTTP/1.1", b"\x30\x00"]
)
def test_se_2_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        subject_of(data)
