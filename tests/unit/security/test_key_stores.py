"""SE-2: keystores and truststores in each form, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from barnabas.errors import ConfigError
from barnabas.security.key_stores import load_key_store, load_trust_store
from barnabas.security.pem import PemBlock, der_of, pem_blocks, pem_of
from barnabas.security.tls import client_context, server_context
from barnabas.security.tls_settings import TlsSettings
from tests.kit.certificates import Authority, PemFiles
from tests.kit.keytool_store import KEY_PASSWORD, STORE, STORE_PASSWORD


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> PemFiles:
    return authority.server()


def settings(files: PemFiles, **others: str) -> TlsSettings:
    return TlsSettings(keystore_type="PEM", keystore_location=str(files.keystore))._replace(
        **others
    )


def chain_of(store_pem: str) -> list[PemBlock]:
    return [block for block in pem_blocks(store_pem) if block.is_certificate]


def pkcs12_file(files: PemFiles, path: Path, password: str, issuer: PemFiles | None = None) -> Path:
    certificate = x509.load_pem_x509_certificate(files.chain.read_bytes())
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    authority = x509.load_pem_x509_certificate(files.truststore.read_bytes())
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"broker",
            key,  # type: ignore[arg-type]
            certificate,
            [authority],
            serialization.BestAvailableEncryption(password.encode()),
        )
    )
    return path


def test_se_2_pem_in_a_file_and_in_the_settings(broker: PemFiles) -> None:
    from_file = load_key_store(settings(broker))
    inline = load_key_store(
        TlsSettings(
            keystore_type="PEM",
            keystore_key=broker.key.read_text(),
            keystore_certificate_chain=broker.chain.read_text(),
        )
    )
    assert from_file is not None
    assert from_file == inline
    assert chain_of(from_file.chain) == chain_of(broker.chain.read_text())
    assert "PRIVATE" not in repr(from_file)


def test_se_2_pem_in_one_line_is_read(broker: PemFiles) -> None:
    """Properties files have no line ends in values; Kafka reads spaces for them."""
    one_line = " ".join(broker.truststore.read_text().split("\n"))
    trusted = load_trust_store(TlsSettings(truststore_type="PEM", truststore_certificates=one_line))
    assert trusted == broker.truststore.read_text()


def test_se_2_an_encrypted_key_needs_its_password(authority: Authority) -> None:
    files = authority.server(password="geheim")
    with pytest.raises(ConfigError, match=r"the private key is encrypted; set ssl\.key\.password"):
        load_key_store(settings(files))
    with pytest.raises(ConfigError, match=r"check ssl\.key\.password") as wrong:
        server_context(settings(files, key_password="other-secret"))
    assert "other-secret" not in str(wrong.value)
    server_context(settings(files, key_password="geheim"))


def test_se_2_pkcs12(broker: PemFiles, tmp_path: Path) -> None:
    path = pkcs12_file(broker, tmp_path / "b.p12", "geheim")
    own = TlsSettings(
        keystore_type="PKCS12",
        keystore_location=str(path),
        keystore_password="geheim",
        truststore_type="PKCS12",
        truststore_location=str(path),
        truststore_password="geheim",
    )
    store = load_key_store(own)
    assert store is not None
    assert chain_of(store.chain)[0] == chain_of(broker.chain.read_text())[0]
    assert len(chain_of(store.chain)) == 2  # with its authority
    assert chain_of(broker.truststore.read_text())[0] in chain_of(load_trust_store(own) or "")
    server_context(own)
    client_context(own)
    for name in ("keystore_password", "truststore_password"):
        load = load_key_store if name.startswith("key") else load_trust_store
        with pytest.raises(ConfigError, match="the store's password is wrong") as wrong:
            load(own._replace(**{name: "falsch"}))
        assert "falsch" not in str(wrong.value)


def test_se_2_jks(tmp_path: Path) -> None:
    path = tmp_path / "b.jks"
    path.write_bytes(STORE)
    own = TlsSettings(
        keystore_location=str(path),
        keystore_password=STORE_PASSWORD,
        key_password=KEY_PASSWORD,
        truststore_location=str(path),
    )
    store = load_key_store(own)
    assert store is not None
    assert len(chain_of(store.chain)) == 1
    assert len(chain_of(load_trust_store(own) or "")) == 1
    server_context(own)  # OpenSSL compares the key with its certificate
    with pytest.raises(ConfigError, match="the store's password is wrong"):
        load_key_store(own._replace(keystore_password="falsch"))
    with pytest.raises(ConfigError, match=r"password is wrong \(ssl\.key\.password\)"):
        load_key_store(own._replace(key_password=""))  # then it is the store's, as in Kafka


def test_se_2_other_stores_of_java_are_refused_with_the_command_that_converts_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "b.jceks"
    path.write_bytes(b"\xce\xce\xce\xce" + STORE[4:])
    own = TlsSettings(keystore_location=str(path), keystore_password="p")
    with pytest.raises(ConfigError, match="JCEKS store; convert it: keytool -importkeystore"):
        load_key_store(own)


def test_se_2_a_jks_that_is_pkcs12_in_truth_is_read(broker: PemFiles, tmp_path: Path) -> None:
    """What keytool writes since Java 9, whatever the file is called."""
    path = pkcs12_file(broker, tmp_path / "b.jks", "geheim")
    own = TlsSettings(keystore_location=str(path), keystore_password="geheim")
    assert load_key_store(own) is not None


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"keystore_key": "K", "keystore_type": "JKS"}, "only with ssl.keystore.type=PEM"),
        ({"keystore_key": "K"}, "ssl.keystore.certificate.chain is not"),
        ({"keystore_certificate_chain": "C"}, "ssl.keystore.key is not"),
        (
            {"keystore_key": "K", "keystore_certificate_chain": "C", "keystore_location": "/k"},
            "both set",
        ),
        ({"keystore_key": "K", "keystore_certificate_chain": "C"}, "exactly one PEM private key"),
        ({"keystore_password": "p"}, "ssl.keystore.location is not"),
        ({"keystore_location": "/nowhere.pem"}, "cannot be read: No such file"),
        ({"keystore_type": "BKS"}, "'BKS' is not one of JKS, PKCS12, PEM"),
    ],
)
def test_se_2_what_does_not_fit_together_is_refused(fields: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_key_store(TlsSettings(keystore_type="PEM")._replace(**fields))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"truststore_certificates": "C", "truststore_type": "JKS"}, "truststore.type=PEM"),
        ({"truststore_certificates": "C", "truststore_location": "/k"}, "both set"),
        ({"truststore_certificates": "C", "truststore_password": "p"}, "cannot be set with"),
        ({"truststore_certificates": "C"}, "there is no PEM certificate"),
        ({"truststore_password": "p"}, "truststore.location is not"),
        (
            {"truststore_certificates": "-----BEGIN X-----\n%\n-----END X-----"},
            "PEM block X is damaged",
        ),
    ],
)
def test_se_2_a_truststore_that_cannot_be_is_refused(fields: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_trust_store(TlsSettings(truststore_type="PEM")._replace(**fields))


def test_se_2_a_pem_file_under_another_type_says_so(broker: PemFiles) -> None:
    """JKS is the default of the type, so this is what people meet first."""
    for kind, load in (("keystore", load_key_store), ("truststore", load_trust_store)):
        path = str(broker.keystore)
        with pytest.raises(ConfigError, match=f"is a PEM file: set ssl.{kind}.type=PEM"):
            load(TlsSettings()._replace(**{f"{kind}_location": path}))


def test_se_2_damaged_stores_are_refused_with_their_path(tmp_path: Path) -> None:
    for name, content in (("a.p12", b"\x30\x82rubbish"), ("a.jks", b"\xfe\xed\xfe\xedrubbish")):
        path = tmp_path / name
        path.write_bytes(content)
        own = TlsSettings(keystore_location=str(path), keystore_password="p")
        with pytest.raises(ConfigError, match=rf"ssl\.keystore\.location={path}"):
            load_key_store(own)


def test_pem_blocks_are_found_among_other_text() -> None:
    text = f"Bag Attributes\n  friendlyName: x\n{pem_of('CERTIFICATE', b'abc' * 40)}rest"
    (block,) = pem_blocks(text)
    assert der_of(block) == b"abc" * 40
    assert block.text == pem_of("CERTIFICATE", b"abc" * 40)
