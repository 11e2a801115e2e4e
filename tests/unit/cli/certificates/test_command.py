"""`barnabas certificates` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.broker.security.secure_setup import prepare
from barnabas.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return prepare(tmp_path / "secure", ("localhost", "::1")).directory


def test_se_2_certificates_are_shown_and_their_end_is_warned_of(
    directory: Path, capsys: Capture
) -> None:
    assert main(["certificates", "show", "--secure-dir", str(directory)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    authority, server = said.out.splitlines()
    assert authority.startswith(f"{directory / 'ca.pem'}\tCN=Barnabas CA\t-\texpires ")
    assert "\tCN=barnabas\t::1, localhost\texpires " in server and server.endswith("left: 396")

    assert main(["certificates", "renew", "--secure-dir", str(directory), "--days", "30"]) == 0
    capsys.readouterr()
    assert main(["certificates", "show", str(directory / "server.pem"), "--json"]) == 0
    said = capsys.readouterr()
    [row] = json.loads(said.out)
    assert (row["names"], row["days_left"]) == (["::1", "localhost"], 29)
    assert said.err.count("server.pem expires in 29 days: renew it") == 1


def test_se_2_certificates_are_renewed_with_more_names_and_issued_to_users(
    directory: Path, tmp_path: Path, capsys: Capture
) -> None:
    renew = ["certificates", "renew", "--secure-dir", str(directory), "--name", "b.example.org"]
    assert main(renew) == 0
    assert "for ::1, b.example.org, localhost; it expires on" in capsys.readouterr().out
    file = tmp_path / "alice.pem"
    issue = ["certificates", "issue", "--secure-dir", str(directory), "--file", str(file)]
    assert main([*issue, "--user", "alice"]) == 0
    assert f"Wrote {file}, for CN=alice; it expires on" in capsys.readouterr().out
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().count("-----BEGIN ") == 2
    assert main([*issue, "--user", "alice"]) == 1
    assert f"{file} already exists" in capsys.readouterr().err
    assert main([*issue, "--user", "alice", "--name", "b"]) == 2
    (directory / "ca.key").unlink()
    assert main(renew) == 1
    assert "on the machine that has the authority's key" in capsys.readouterr().err
