"""UX-4, UX-6: lines of `kafka-acls.sh` about rules in ZooKeeper that cannot be carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--authorizer-properties nothing", "--authorizer-properties nothing: not of the form"),
        ("--authorizer-properties zookeeper.connect=", "not of the form NAME=VALUE"),
        ("--authorizer-properties super.users=User:a", "names no ZooKeeper: add"),
        ("--authorizer-properties zookeeper.connect=h:x", "'h:x' is not an address"),
        (
            "--authorizer no.such.Class --authorizer-properties zookeeper.connect=h:1",
            "Java classes",
        ),
        ("--authorizer kafka.security.authorizer.AclAuthorizer", "can be used only with"),
        ("--zk-tls-config-file f", "can be used only with"),
        ("--zk-tls-config-file f --bootstrap-server h:1", "can't be used with"),
        ("--authorizer-properties zookeeper.connect=h:1 --explain", "without --explain"),
        (
            "--authorizer-properties zookeeper.connect=127.0.0.1:1 "
            "--authorizer-properties zookeeper.connection.timeout.ms=200",
            "no response from ZooKeeper within 200 ms",
        ),
        (
            "--authorizer-properties authorizer.zookeeper.url=127.0.0.1:1 "
            "--authorizer-properties authorizer.zookeeper.connection.timeout.ms=200 "
            "--authorizer-properties zookeeper.connect=h:2",
            "zookeeper.connect=127.0.0.1:1: no response from ZooKeeper within 200 ms",
        ),
    ],
)
def test_what_is_wrong_is_said(line: str, problem: str, capfd: Capture) -> None:
    assert main(["kafka-acls.sh", "--list", *line.split()]) != 0
    captured = capfd.readouterr()
    assert problem in captured.err
    assert captured.out == ""


def test_the_file_for_tls_has_names_with_and_without_the_authorizers_prefix(
    tmp_path: Path, capfd: Capture
) -> None:
    file = tmp_path / "zookeeper.properties"
    for prefix in ("", "authorizer."):
        file.write_text(
            f"{prefix}zookeeper.ssl.client.enable=true\n"
            f"{prefix}zookeeper.ssl.truststore.location=/nowhere/store.pem\n"
        )
        words = ("--authorizer-properties", "zookeeper.connect=127.0.0.1:1")
        assert main(["kafka-acls.sh", "--list", *words, "--zk-tls-config-file", str(file)]) == 1
        assert "/nowhere/store.pem" in capfd.readouterr().err
