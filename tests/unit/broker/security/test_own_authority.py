"""SE-2: certificates are issued by a key that brokers need not have."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.broker.security import own_authority
from barnabas.broker.security.secure_setup import prepare
from barnabas.errors import ConfigError
from barnabas.security.authority import describe

NAMES = ("localhost", "127.0.0.1")


def days_of(path: Path) -> int:
    return (describe(path.read_bytes()).ends_at - datetime.now(UTC)).days


def test_se_2_a_broker_runs_without_the_authoritys_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(tmp_path, NAMES)
    (tmp_path / "ca.key").rename(tmp_path / "kept.key")
    before = (tmp_path / "server.pem").read_bytes()
    with caplog.at_level(logging.WARNING):
        prepare(tmp_path, NAMES)
        assert caplog.messages == []
        prepare(tmp_path, (*NAMES, "b1.example.org"))
    [warning] = caplog.messages
    assert "lacks b1.example.org: run `barnabas certificates renew" in warning
    assert (tmp_path / "server.pem").read_bytes() == before


def test_se_2_a_certificate_that_ends_soon_is_renewed_where_the_key_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(tmp_path, NAMES)
    key, kept = tmp_path / "ca.key", tmp_path / "kept.key"
    own_authority.renew(tmp_path, days=29)
    key.rename(kept)
    with caplog.at_level(logging.WARNING):
        prepare(tmp_path, NAMES)
    assert "server.pem expires on" in caplog.text
    kept.rename(key)
    prepare(tmp_path, NAMES)
    assert days_of(tmp_path / "server.pem") > 300


def test_se_2_without_the_key_an_ended_or_missing_certificate_is_refused_with_the_way_out(
    tmp_path: Path,
) -> None:
    prepare(tmp_path, NAMES)
    authority = own_authority.load_authority(tmp_path)
    ended = authority.issue("barnabas", timedelta(minutes=-1), NAMES)
    (tmp_path / "ca.key").unlink()
    server = tmp_path / "server.pem"
    server.write_bytes(ended.key + ended.certificate)
    way_out = "run `barnabas certificates renew --secure-dir DIR` on the machine that has ca.key"
    with pytest.raises(ConfigError, match=f"server.pem expired on .*{way_out}"):
        prepare(tmp_path, NAMES)
    server.unlink()
    with pytest.raises(ConfigError, match=f"server.pem and .* are missing.*{way_out}"):
        prepare(tmp_path, NAMES)
    with pytest.raises(
        ConfigError, match="issue certificates on the machine that has the authority's key"
    ):
        own_authority.renew(tmp_path, NAMES)
    server.write_text("rubbish")
    server.chmod(0o600)
    with pytest.raises(ConfigError, match=r"server\.pem contains no valid PEM certificate"):
        prepare(tmp_path, NAMES)
    (tmp_path / "ca.key").write_text("nonsense")
    (tmp_path / "ca.key").chmod(0o600)
    server.unlink()
    with pytest.raises(ConfigError, match=r"ca\.key, .*ca\.pem: "):
        prepare(tmp_path, NAMES)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("ca.key", "key is not a PEM private key"),
        ("ca.pem", "certificate is not a PEM certificate"),
    ],
)
def test_se_2_a_damaged_authority_is_named(tmp_path: Path, file: str, says: str) -> None:
    prepare(tmp_path, NAMES)
    (tmp_path / file).write_bytes(b"junk")
    with pytest.raises(ConfigError, match=rf"{file}.*: the authority's {says}.* from a backup$"):
        own_authority.renew(tmp_path, NAMES)
