"""ZS-1: the login with DIGEST-MD5, as RFC 2831 computes it."""

from __future__ import annotations

from hashlib import md5

import pytest

from barnabas.zookeeper.digest_md5 import DigestExchange, LoginFailed

URI = "zookeeper/zk-sasl-md5"


def hashed(text: str) -> str:
    return md5(text.encode("latin-1")).hexdigest()


def proof(password: str, method: str, user: str = "admin") -> str:
    secret = md5(f"{user}:zk-sasl-md5:{password}".encode("latin-1")).digest()
    a1 = md5(secret + b":n1:c1").hexdigest()
    return hashed(f"{a1}:n1:00000001:c1:auth:{hashed(f'{method}:{URI}')}")


def message(password: str = "a\u00e9", user: str = "admin", **changes: str) -> bytes:
    fields = {
        "username": user,
        "realm": "zk-sasl-md5",
        "nonce": "n1",
        "cnonce": "c1",
        "nc": "00000001",
        "qop": "auth",
        "digest-uri": URI,
        "response": proof(password, "AUTHENTICATE", user),
        **changes,
    }
    plain = ("nc", "qop", "response")
    return ",".join(f"{n}={v}" if n in plain else f'{n}="{v}"' for n, v in fields.items()).encode()


def exchange() -> DigestExchange:
    found = DigestExchange({"admin": "a\u00e9"}, "n1")
    assert b'realm="zk-sasl-md5",nonce="n1"' in found.respond(b"")
    return found


def test_zs_1_a_user_logs_in_and_the_server_proves_that_it_knows_the_password() -> None:
    login = exchange()
    expected = proof("a\u00e9", "").encode()
    assert login.respond(message()) == b"rspauth=" + expected
    assert login.user == "admin"


@pytest.mark.parametrize(
    "refused",
    [
        message("wrong"),
        message(user="other"),
        message(nonce="n2"),
        message(realm="other"),
        message(nc="00000002"),
        message(qop="auth-int"),
        message(**{"digest-uri": "zookeeper/other"}),
        message(response=""),
        message() + b',nonce="n1"',
        b"username",
        b'username="admin',
        b"\xff\0" * 8,
        b"a=" * 4096,
    ],
)
def test_zs_1_anything_else_is_no_login(refused: bytes) -> None:
    login = exchange()
    with pytest.raises(LoginFailed):
        login.respond(refused)
    assert login.user is None


def test_zs_1_the_first_message_is_never_a_login() -> None:
    login = DigestExchange({"admin": "a\u00e9"}, "n1")
    assert login.respond(message()).startswith(b"realm=")
    assert login.user is None


def test_zs_1_a_message_is_accepted_only_once() -> None:
    login = exchange()
    login.respond(message())
    with pytest.raises(LoginFailed):
        login.respond(message())
