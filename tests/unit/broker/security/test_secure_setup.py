"""What `--secure` makes, and finds again."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.broker.security.secure_setup import SecureSetup, prepare
from barnabas.errors import ConfigError
from barnabas.security.authority import Authority, Issued, describe

NAMES = ("localhost", "127.0.0.1", "::1")


def shake_hands(setup: SecureSetup, host: str) -> str | None:
    """A TLS handshake in memory, with the host that a client asks for; the version in use."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(setup.directory / "server.pem")
    client_context = ssl.create_default_context(cafile=str(setup.directory / "ca.pem"))
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(up, down, server_side=True)
    client = client_context.wrap_bio(down, up, server_hostname=host)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return client.version()


def test_se_2_a_client_that_trusts_the_authority_reaches_the_names_alone(tmp_path: Path) -> None:
    setup = prepare(tmp_path / "secure", NAMES)
    for host in NAMES:
        assert shake_hands(setup, host) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'example\.org'"):
        shake_hands(setup, "example.org")


def test_se_6_secrets_are_for_their_owner(tmp_path: Path) -> None:
    setup = prepare(tmp_path / "secure", NAMES)
    setup.write_client_files("localhost:9092")
    modes = {path.name: path.stat().st_mode & 0o777 for path in setup.directory.iterdir()}
    public = modes.pop("ca.pem")
    assert public & 0o004 and set(modes.values()) == {0o600}, modes
    assert setup.directory.stat().st_mode & 0o777 == 0o700
    assert len(modes) == 6
    for password in (*setup.passwords.values(), *setup.zookeeper_settings().values()):
        assert password not in repr(setup)


def test_se_6_a_tree_is_owned_from_its_beginning_or_not_at_all(tmp_path: Path) -> None:
    """A directory of older brokers stays without, as their tree is open."""
    owning = prepare(tmp_path, NAMES).zookeeper_settings()
    assert owning["zookeeper.set.acl"] == "true"
    assert owning["barnabas.zookeeper.credentials"].startswith("broker:")
    (tmp_path / "zookeeper.properties").unlink()
    assert prepare(tmp_path, NAMES).zookeeper_settings() == {}


def test_what_is_there_is_used_again(tmp_path: Path) -> None:
    first = prepare(tmp_path, NAMES)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert prepare(tmp_path, NAMES[:1]) == first
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_new_name_and_an_end_that_is_near_renew_the_server_certificate_alone(
    tmp_path: Path,
) -> None:
    first = prepare(tmp_path, NAMES)
    server = tmp_path / "server.pem"
    before = server.read_bytes()
    prepare(tmp_path, ["broker.example.org"])
    assert describe(server.read_bytes()).names == {*NAMES, "broker.example.org"}

    authority = Authority.load(
        Issued((tmp_path / "ca.key").read_bytes(), (tmp_path / "ca.pem").read_bytes())
    )
    short = authority.issue("barnabas", timedelta(days=29), NAMES)
    server.write_bytes(short.key + short.certificate)
    second = prepare(tmp_path, NAMES)
    assert server.read_bytes() not in (before, short.key + short.certificate)
    assert second == first
    assert shake_hands(second, "localhost")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("server.pem", b"nonsense", r"server\.pem contains no valid PEM"),
        ("users.json", b"{}", r"users\.json lacks the passwords"),
        ("users.json", b"[", r"users\.json lacks the passwords"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    prepare(tmp_path, NAMES)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        prepare(tmp_path, NAMES)


def test_the_authority_of_another_key_is_refused() -> None:
    one, other = (Authority.new("CA", timedelta(days=1)) for _ in range(2))
    with pytest.raises(ValueError, match="does not match its certificate"):
        Authority.load(Issued(one.key, other.certificate))


def test_se_6_what_another_user_has_put_there_is_not_believed(tmp_path: Path) -> None:
    """The default directory of a quick try is in /tmp, where anyone can be first."""
    path = tmp_path / "secure"
    prepare(path, NAMES)
    (path / "users.json").chmod(0o666)
    with pytest.raises(ConfigError, match=r"users\.json: other users can write to this file"):
        prepare(path, NAMES)
    (path / "users.json").chmod(0o600)
    path.chmod(0o777)
    with pytest.raises(ConfigError, match="other users can write to this directory"):
        prepare(path, NAMES)
