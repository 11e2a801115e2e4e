"""SCRAM credentials in the notation of `kafka-configs.sh`, and messages that show none."""

from __future__ import annotations

import pytest

from barnabas.cli.configs.changes import BadChange
from barnabas.cli.configs.users import describe_user_text, scram_alterations
from barnabas.client import UserScramCredentialDeletion, UserScramCredentialUpsertion

SECRET = "planted-secret"


@pytest.mark.parametrize(
    ("add", "wanted"),
    [
        ("SCRAM-SHA-256=[iterations=8192,password=a]", ("a", "SCRAM-SHA-256", 8192)),
        ("SCRAM-SHA-512=[password=a,b=c]", ("a,b=c", "SCRAM-SHA-512", 4096)),
        ("SCRAM-SHA-512=password=a", ("a", "SCRAM-SHA-512", 4096)),
    ],
)
def test_se_3_credentials_are_read_as_kafka_reads_them(
    add: str, wanted: tuple[str, str, int]
) -> None:
    assert scram_alterations("alice", [add], ["SCRAM-SHA-256"]) == [
        UserScramCredentialUpsertion("alice", *wanted),
        UserScramCredentialDeletion("alice", "SCRAM-SHA-256"),
    ]


@pytest.mark.parametrize(
    ("add", "delete"),
    [
        (f"SCRAM-SHA-256=[password={SECRET}", ""),
        (f"SCRAM-SHA-256=[iterations=x,password={SECRET}]", ""),
        ("SCRAM-SHA-256=[password=]", ""),
        (f"SCRAM-SHA-256={SECRET}", ""),
        (f"{SECRET}", ""),
        (f"{SECRET}=[password={SECRET}]", ""),
        ("producer_byte_rate=1024", ""),
        ("", f"{SECRET}"),
        ("", f"SCRAM-SHA-256={SECRET}"),
    ],
)
def test_se_3_what_is_malformed_shows_nothing_of_it(add: str, delete: str) -> None:
    with pytest.raises(BadChange) as error:
        scram_alterations("alice", filter(None, [add]), filter(None, [delete]))
    assert SECRET not in str(error.value)


def test_se_3_a_user_is_described_in_kafkas_line() -> None:
    assert describe_user_text("alice", {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096}) == (
        "SCRAM credential configs for user-principal 'alice' are "
        "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096"
    )
