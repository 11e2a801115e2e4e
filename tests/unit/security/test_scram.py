"""SCRAM against an implementation of others, against itself, and against attackers."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptData, SaslAuthenticationFailed
from barnabas.security.sasl import SCRAM_SHA_256, SCRAM_SHA_512, Identity, InvalidCredentials
from barnabas.security.scram import (
    ScramAccount,
    ScramClient,
    ScramCredential,
    ScramServer,
    ScramUser,
    credential_from_salted,
    escape,
    kind_of,
    mechanism_of,
    new_credential,
    new_salt,
    parse_credential,
    principal_of,
    salted_password,
    unescape,
)

MECHANISMS = (SCRAM_SHA_256, SCRAM_SHA_512)
PASSWORD = "planted-secret-8"
KAFKAS = (
    "salt=cjg0bGk4bmg3ZmJkNzUxZG94ZnF4YzFvaA==,stored_key=jc9T2g7M4w+cIdBoS4FvN6TpEZFDqGLGc0IF5crpO60=,"
    "server_key=I4f/Jc4M1GFoFfSlW62RRy+1tj1X6MKQmRcKoF915NQ=,iterations=4096"
)

Account = tuple[str, ScramCredential]


@pytest.fixture(scope="module", params=MECHANISMS)
def account(request: pytest.FixtureRequest) -> Account:
    return request.param, new_credential(request.param, PASSWORD)


def server_of(account: Account, name: str = "alice") -> ScramServer:
    mechanism, credential = account

    def find(user: ScramUser) -> ScramAccount | None:
        known = user == ScramUser(name, is_token=False)
        return ScramAccount(credential, Identity(principal_of(name))) if known else None

    def decoy(user: ScramUser) -> ScramCredential:
        return ScramCredential(b"s" * 26, bytes(32), bytes(32), 4096)

    return ScramServer(mechanism, find, decoy)


def finish(server: ScramServer, client: ScramClient) -> None:
    """Play the exchange to its end."""
    message: bytes | None = client.first()
    while message is not None:
        message = client.respond(server.respond(message))


@pytest.mark.parametrize("name", ["alice", "a,b=c", "\N{GREEK SMALL LETTER ALPHA} b"])
def test_se_3_client_and_server_agree(account: Account, name: str) -> None:
    server = server_of(account, name)
    finish(server, ScramClient(account[0], name, PASSWORD))
    assert server.identity == Identity(principal_of(name))


def test_se_3_a_client_of_others_logs_in_here(account: Account) -> None:
    scramp = pytest.importorskip("scramp")
    server = server_of(account)
    client = scramp.ScramClient([account[0]], "alice", PASSWORD)
    client.set_server_first(server.respond(client.get_client_first().encode()).decode())
    client.set_server_final(server.respond(client.get_client_final().encode()).decode())
    assert server.identity is not None


def test_se_3_our_client_logs_in_to_a_server_of_others(account: Account) -> None:
    scramp = pytest.importorskip("scramp")
    mechanism, credential = account
    known = (
        credential.salt,
        credential.stored_key,
        credential.server_key,
        credential.iterations,
    )
    server = scramp.ScramMechanism(mechanism).make_server(lambda user: known)
    client = ScramClient(mechanism, "alice", PASSWORD)
    server.set_client_first(client.first().decode())
    final = client.respond(server.get_server_first().encode())
    assert final is not None
    server.set_client_final(final.decode())
    assert client.respond(server.get_server_final().encode()) is None


def test_se_3_a_wrong_password_and_an_unknown_user_look_the_same(account: Account) -> None:
    shapes = []
    for user, password in (("alice", "wrong"), ("mallory", PASSWORD)):
        server, client = server_of(account), ScramClient(account[0], user, password)
        challenge = server.respond(client.first())
        nonce, salt, iterations = challenge.decode().split(",")
        final = client.respond(challenge)
        assert final is not None
        with pytest.raises(InvalidCredentials) as error:
            server.respond(final)
        shapes.append((len(nonce), len(salt), iterations, str(error.value)))
        assert server.identity is None
    assert shapes[0] == shapes[1]


def test_se_3_a_token_is_not_a_user_of_that_name(account: Account) -> None:
    """Its id and HMAC are looked up elsewhere, by `tokenauth`."""
    server = server_of(account)
    with pytest.raises(InvalidCredentials):
        finish(server, ScramClient(account[0], "alice", PASSWORD, is_token=True))


@pytest.mark.parametrize(
    "first",
    [
        b"p=tls-unique,,n=alice,r=abc",  # a binding that was not offered
        b"y,,n=alice,r=abc",  # one that the client believes was taken away
        b"n,,n=,r=abc",
        b"n,,n=al=ice,r=abc",
        b"n,,n=alice",
        b"n,,n=alice,r=",
        b"n,,r=abc,n=alice",
        b"n,,m=must,n=alice,r=abc",
        b"n,a=,n=alice,r=abc",
        b"n,,n=alice,r=a b",
        b"\xff",
        b"",
        b"n,,n=alice,r=abc,",
    ],
)
def test_se_3_a_malformed_first_message_is_refused(account: Account, first: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        server_of(account).respond(first)


def test_se_3_nobody_logs_in_for_another(account: Account) -> None:
    with pytest.raises(SaslAuthenticationFailed, match="different from username"):
        server_of(account).respond(b"n,a=bob,n=alice,r=abc")


Change = Callable[[str], str]

ATTACKS: dict[str, Change] = {
    "another channel binding": lambda final: final.replace(
        "c=biws", "c=" + base64.b64encode(b"p=tls-unique,,x").decode()
    ),
    "the flag of a client that misses a binding": lambda final: final.replace(
        "c=biws", "c=" + base64.b64encode(b"y,,").decode()
    ),
    "another nonce": lambda final: final.replace("r=", "r=x"),
    "a nonce cut short": lambda final: final.replace(final.split(",")[1], "r=abc"),
    "no proof": lambda final: final.rpartition(",p=")[0],
    "an empty proof": lambda final: final.rpartition(",p=")[0] + ",p=",
    "a short proof": lambda final: final.rpartition(",p=")[0] + ",p=AAAA",
    "a proof of zeros": lambda final: (
        final.rpartition(",p=")[0] + ",p=" + base64.b64encode(bytes(32)).decode()
    ),
    "bad base64": lambda final: final + "=A",
    "an extension that was not signed": lambda final: final.replace(",p=", ",x=1,p="),
    "something behind the proof": lambda final: final + ",x=1",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_se_3_a_changed_final_message_is_refused(account: Account, attack: str) -> None:
    server, client = server_of(account), ScramClient(account[0], "alice", PASSWORD)
    final = client.respond(server.respond(client.first()))
    assert final is not None
    with pytest.raises(InvalidCredentials):
        server.respond(ATTACKS[attack](final.decode()).encode())
    assert server.identity is None


def signed_final(account: Account, challenge: bytes, nonce: str, binding: bytes) -> bytes:
    """The last message of a client that knows the password, and says what it likes."""
    mechanism, credential = account
    name = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}[mechanism]
    final = f"c={base64.b64encode(binding).decode()},r={nonce}"
    salted = salted_password(mechanism, PASSWORD, credential.salt, credential.iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    signed = f"n=alice,r=own,{challenge.decode()},{final}".encode()
    signature = hmac.digest(credential.stored_key, signed, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{final},p={base64.b64encode(proof).decode()}".encode()


def test_se_3_an_old_librdkafka_that_repeats_its_nonce_gets_in(account: Account) -> None:
    """As in Kafka 3.9, which compares the nonce's end; it is signed as it is sent."""
    server = server_of(account)
    challenge = server.respond(b"n,,n=alice,r=own")
    nonce = "own" + challenge.decode().split(",")[0][2:]
    server.respond(signed_final(account, challenge, nonce, b"n,,"))
    assert server.identity is not None


@pytest.mark.parametrize(
    ("cut", "binding"), [(3, b"n,,"), (0, b"y,,"), (0, b"p=tls-unique,,x"), (0, b"")]
)
def test_se_3_the_right_password_with_another_nonce_or_binding_is_refused(
    account: Account, cut: int, binding: bytes
) -> None:
    server = server_of(account)
    challenge = server.respond(b"n,,n=alice,r=own")
    nonce = challenge.decode().split(",")[0][2 + cut :]
    with pytest.raises(InvalidCredentials):
        server.respond(signed_final(account, challenge, nonce, binding))
    assert server.identity is None


def test_se_3_a_replayed_or_reordered_exchange_is_refused(account: Account) -> None:
    server, client = server_of(account), ScramClient(account[0], "alice", PASSWORD)
    first = client.first()
    final = client.respond(server.respond(first))
    assert final is not None
    server.respond(final)
    with pytest.raises(InvalidCredentials):  # once more on the same connection
        server.respond(final)
    again = server_of(account)
    with pytest.raises(InvalidCredentials):  # out of order
        again.respond(final)
    another = server_of(account)
    another.respond(first)
    with pytest.raises(InvalidCredentials):  # the server's nonce is another one
        another.respond(final)
    with pytest.raises(InvalidCredentials):  # and there is no second attempt
        another.respond(final)


@pytest.mark.parametrize(
    "challenge",
    [
        "r={nonce}x,s=c2FsdA==,i=4095",  # a cheap guess for whoever listens
        "r={nonce}x,s=c2FsdA==,i=1000001",  # a client that computes for minutes
        "r={nonce},s=c2FsdA==,i=4096",  # adds nothing
        "r=other,s=c2FsdA==,i=4096",
        "r={nonce}x,s=,i=4096",
        "r={nonce}x,s=c2FsdA==",
        "e=other-error",
        "",
    ],
)
def test_se_3_a_client_refuses_a_bad_challenge(challenge: str) -> None:
    client = ScramClient(SCRAM_SHA_256, "alice", PASSWORD)
    nonce = client.first().decode().partition(",r=")[2]
    with pytest.raises(InvalidCredentials):
        client.respond(challenge.format(nonce=nonce).encode())


@pytest.mark.parametrize("final", [b"", b"v=", b"v=AAAA", b"e=invalid-proof", b"\xff"])
def test_se_3_a_client_refuses_a_server_that_does_not_know_the_password(
    account: Account, final: bytes
) -> None:
    client = ScramClient(account[0], "alice", PASSWORD)
    client.respond(server_of(account).respond(client.first()))
    with pytest.raises(InvalidCredentials):
        client.respond(final)


def test_se_3_credentials_of_a_real_kafka_are_read_and_written_as_it_does() -> None:
    credential = parse_credential(SCRAM_SHA_256, KAFKAS)
    assert (credential.iterations, len(credential.salt)) == (4096, 25)
    assert credential.text() == KAFKAS
    assert KAFKAS[10:20] not in repr(credential)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password=x",
        KAFKAS.replace("iterations=4096", "iterations=4095"),
        KAFKAS.replace("iterations=4096", "iterations=many"),
        KAFKAS.replace("stored_key=jc9T", "stored_key="),
        KAFKAS.replace("stored_key=", "stored_key=!"),
        KAFKAS.replace("salt=cjg0bGk4bmg3ZmJkNzUxZG94ZnF4YzFvaA==", "salt="),
    ],
)
def test_se_3_a_malformed_credential_shows_nothing_of_itself(text: str) -> None:
    with pytest.raises(CorruptData) as error:
        parse_credential(SCRAM_SHA_256, text)
    assert "jc9T" not in str(error.value)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_se_3_a_salted_password_makes_the_same_credential(mechanism: str) -> None:
    salt = new_salt()
    salted = salted_password(mechanism, PASSWORD, salt, 5000)
    server = server_of((mechanism, credential_from_salted(mechanism, salted, salt, 5000)))
    finish(server, ScramClient(mechanism, "alice", PASSWORD))
    assert mechanism_of(kind_of(mechanism)) == mechanism
    assert mechanism_of(0) is None


@given(st.text(min_size=1))
def test_se_3_any_name_survives(name: str) -> None:
    assert unescape(escape(name)) == name
    assert "," not in escape(name)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_se_3_no_bytes_do_more_than_fail(first: bytes, second: bytes) -> None:
    server = server_of((SCRAM_SHA_256, parse_credential(SCRAM_SHA_256, KAFKAS)))
    for message in (first, second):
        with pytest.raises(SaslAuthenticationFailed):
            server.respond(message)
