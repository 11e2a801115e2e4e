"""What an administrator hands over to a user: nothing of the administrator's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.users.client_files import PasswordLost, client_files
from barnabas.client.admin.scram_admin import UserScramCredentialUpsertion
from barnabas.config import load_properties

USER = UserScramCredentialUpsertion("al\\ice", 'pass"word\\', "SCRAM-SHA-256", 4096)


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    authority = tmp_path / "closed" / "ca.pem"
    authority.parent.mkdir(mode=0o700)
    authority.write_bytes(b"certificate\n")
    return {
        "security_protocol": "SASL_SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(authority),
        "ssl_endpoint_identification_algorithm": "",
        "ssl_keystore_location": "/admin.pem",
        "ssl_key_password": "the administrator's",
        "sasl_jaas_config": "the administrator's",
    }


def test_se_3_the_two_forms_and_a_copy_of_the_authority(
    tmp_path: Path, options: dict[str, str]
) -> None:
    path = tmp_path / "alice.properties"
    files = client_files(path, "h:1,h:2", options)
    said = files.write(USER)
    assert said.startswith(f"{path} has the settings for a client, ")
    authority = str(tmp_path / "alice.ca.pem")
    assert Path(authority).read_bytes() == b"certificate\n"
    kept = {"bootstrap.servers": "h:1,h:2", "security.protocol": "SASL_SSL"}
    assert load_properties(str(path)) == {
        **kept,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
        "ssl.endpoint.identification.algorithm": "",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="al\\\\ice" password="pass\\"word\\\\";',
    }
    # kcat takes each line as it stands.
    lines = files.librdkafka_path.read_text().splitlines()
    assert dict(line.split("=", 1) for line in lines) == {
        **kept,
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": authority,
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": USER.user,
        "sasl.password": USER.password,
    }
    assert [each.stat().st_mode & 0o777 for each in (path, files.librdkafka_path)] == [0o600] * 2
    assert Path(authority).stat().st_mode & 0o777 == 0o644


def test_a_truststore_of_java_stays_where_it_is(tmp_path: Path) -> None:
    options = {"ssl_truststore_location": "/trust.jks", "ssl_truststore_password": "p"}
    files = client_files(tmp_path / "bob", "h:1", options)
    assert "both refer" not in files.write(USER)
    assert load_properties(str(tmp_path / "bob"))["ssl.truststore.location"] == "/trust.jks"
    assert "ssl" not in files.librdkafka_path.read_text()


def test_what_cannot_be_written_asks_for_another_password(
    tmp_path: Path, options: dict[str, str]
) -> None:
    files = client_files(tmp_path / "missing" / "alice", "h:1", options)
    with pytest.raises(PasswordLost, match=r"`barnabas users rotate al\\ice` generates another"):
        files.write(USER)
