"""SE-3: tokens from a provider: when they are replaced, and what it may answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.clock import SystemRandom
from barnabas.errors import ConfigError, SaslAuthenticationFailed
from barnabas.security.sasl import TokenUnavailable
from barnabas.security.token_endpoint import (
    Grant,
    Refresh,
    TokenEndpoint,
    grant_of,
    renewal_ms,
    token_endpoint,
)
from tests.kit.signed_tokens import claims, signer
from tests.kit.token_provider import SECRET, TokenProvider, token_provider

NO_RESERVE = Refresh(0.5, 0.0, 0, 0)


class Wall:
    """A clock that is put forward by the test."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def monotonic_ms(self) -> int:
        return self.wall_ms()


@pytest.fixture
def provider() -> Iterator[TokenProvider]:
    with token_provider() as running:
        yield running


def endpoint(provider: TokenProvider, clock: Wall | None = None, **changes: str) -> TokenEndpoint:
    grant = Grant(provider.url, "alice", SECRET, refresh=NO_RESERVE)._replace(**changes)
    return TokenEndpoint(grant, clock or Wall(), SystemRandom())


@pytest.mark.parametrize(
    ("life_s", "chance", "refresh", "wanted_s"),
    [
        (1000, 0.0, Refresh(), 700),  # the reserve
        (10_000, 0.0, Refresh(), 8000),
        (10_000, 1.0, Refresh(), 8500),
        (300, 0.0, Refresh(), 240),  # too short for pause and reserve
        (1000, 0.0, Refresh(0.1, 0.0, 200, 300), 200),  # the pause
        (1000, 0.5, Refresh(0.5, 0.2, 0, 0), 600),
    ],
)
def test_se_3_a_token_is_replaced_as_by_kafkas_clients(
    life_s: int, chance: float, refresh: Refresh, wanted_s: int
) -> None:
    assert renewal_ms((0, 1000 * life_s), 0, refresh, chance) == 1000 * wanted_s


def test_se_3_a_token_serves_until_a_part_of_its_life_is_over(
    provider: TokenProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """And, if there is no other, to its end."""
    clock = Wall()
    one = endpoint(provider, clock, scope="kafka more")
    first = one.token()
    assert one.token() == first
    assert provider.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka more"]}]
    clock.ahead_ms = 151_000
    provider.status, provider.body = 503, b""
    assert one.token() == first
    assert "keeping the previous token: sasl.oauthbearer.token.endpoint.url=" in caplog.text
    clock.ahead_ms = 301_000
    with pytest.raises(TokenUnavailable, match="HTTP 503"):
        one.token()
    provider.status, provider.body, provider.life_s = 200, None, 900
    assert one.token() != first
    assert SECRET not in caplog.text + repr(one)


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (
            400,
            b'{"error":"invalid_scope"}',
            SaslAuthenticationFailed,
            r"HTTP 400 \(invalid_scope\)",
        ),
        (404, b"<html>", SaslAuthenticationFailed, "rejected the request: HTTP 404$"),
        (429, b"", TokenUnavailable, "HTTP 429"),
        (500, b'{"error":5}', TokenUnavailable, "HTTP 500$"),
        (302, b"", TokenUnavailable, "HTTP 302"),
        (200, b"[", TokenUnavailable, "no access_token"),
        (200, b'{"access_token":null}', TokenUnavailable, "has no token"),
        (200, b"[" * 100_000, TokenUnavailable, "no access_token"),
    ],
)
def test_se_3_an_answer_without_a_token(
    provider: TokenProvider, status: int, body: bytes, error: type[Exception], says: str
) -> None:
    """What is final is said so; a redirection is not followed, since the secret would be."""
    provider.status, provider.body, provider.location = status, body, provider.url
    with pytest.raises(error, match=says) as said:
        endpoint(provider).token()
    assert SECRET not in str(said.value) and len(provider.asked) == 1


def test_se_3_a_wrong_secret_is_final(provider: TokenProvider) -> None:
    with pytest.raises(SaslAuthenticationFailed, match="invalid_client") as said:
        endpoint(provider, client_secret="planted-wrong").token()
    assert "planted" not in str(said.value)


def test_se_3_a_provider_that_is_not_there() -> None:
    with token_provider() as stopped:
        pass
    with pytest.raises(TokenUnavailable, match="refused"):
        endpoint(stopped).token()


def test_se_3_a_file_with_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    grant = grant_of(path.as_uri(), {}, Refresh())
    one = TokenEndpoint(grant, Wall(), SystemRandom())
    with pytest.raises(TokenUnavailable, match="No such file"):
        one.token()
    token = signer().sign(claims(int(time.time())))
    path.write_text(f"{token}\n")
    assert one.token() == token


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        ("http://id.example/token", {}, "anyone on the network could read the client"),
        ("https://id.example/token", {"clientId": ""}, "the option clientId is missing"),
        ("https://id.example/token", {"clientSecret": ""}, "the option clientSecret is missing"),
        ("https://id.example/token", {"ssl.trust": "x"}, "unknown options trust"),
        ("https://h/token", {"ssl.truststore.location": "/no", "ssl.truststore.type": "PEM"},
         "ssl.truststore.location=/no cannot be read"),
    ],
)  # fmt: skip
def test_se_3_what_cannot_be_honoured_is_refused(
    url: str, options: dict[str, str], says: str
) -> None:
    given = {"clientId": "alice", "clientSecret": SECRET, **options}
    with pytest.raises(ConfigError, match=says) as said:
        token_endpoint(grant_of(url, given, Refresh()))
    assert SECRET not in str(said.value)


def test_se_3_connections_share_a_token() -> None:
    given = {"clientId": "alice", "clientSecret": SECRET}
    one, two = (token_endpoint(grant_of("https://h/t", given, Refresh())) for _ in range(2))
    assert one is two
