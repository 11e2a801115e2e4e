"""SSH logins in log lines, and who has tried to guess one (SP-2)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import polars as pl

from barnabas_pipeline.logs.intrusions import LEAST_FAILURES, intruders
from barnabas_pipeline.logs.logins import ACCEPTED, REPORTS, logins
from barnabas_pipeline.logs.masks import mask_variables

START = datetime(2026, 3, 12, 9, tzinfo=UTC)


def table(*messages: str, component: str = "sshd", host: str = "gate") -> pl.DataFrame:
    times = [START + timedelta(seconds=i) for i in range(len(messages))]
    return logins(
        pl.DataFrame(
            {"first": times, "message": messages},
            schema={"first": pl.Datetime("us", "UTC"), "message": pl.String},
        ).with_columns(
            pl.col("first").alias("last"),
            pl.lit(START).alias("hour"),
            pl.lit(date(2026, 3, 12)).alias("day"),
            pl.lit(host).alias("host"),
            pl.lit(component).alias("component"),
        )
    )


def found(*messages: str, component: str = "sshd") -> set[tuple[object, ...]]:
    rows = table(*messages, component=component)
    return set(rows.select("address", "user", "outcome", "attempts").iter_rows())


def test_sp_2_what_sshd_says() -> None:
    assert found(
        "Failed password for root from 183.62.140.253 port 34100 ssh2",
        "Failed password for invalid user oracle from 187.141.143.180 port 1 ssh2",
        "message repeated 2 times: [ Failed password for root from 183.62.140.253 port 3 ssh2]",
        "Accepted publickey for olga from 192.0.2.7 port 9 ssh2: RSA SHA256:x",
        "Invalid user oracle from 187.141.143.180",
        "Failed none for invalid user  0101 from 5.188.10.180 port 4 ssh2",
    ) == {
        ("183.62.140.253", "root", "failed", 3),
        ("187.141.143.180", "oracle", "failed", 1),
        ("192.0.2.7", "olga", "accepted", 1),
        ("5.188.10.180", "0101", "failed", 1),
    }


def test_templates_show_which_messages_report_a_failure() -> None:
    messages = [
        "Failed password for root from 183.62.140.253 port 34100 ssh2",
        "message repeated 2 times: [ Failed password for root from 183.62.140.253 port 3 ssh2]",
        "Failed none for invalid user  0101 from 5.188.10.180 port 4 ssh2",
        "pam_unix(sshd:auth): authentication failure; logname= uid=0 rhost=218.188.2.4  user=x",
        "authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=218.188.2.4 ",
        "Accepted publickey for olga from 192.0.2.7 port 9 ssh2: RSA SHA256:x",
        "Invalid user oracle from 187.141.143.180",
        "Failed to start",
    ]
    for message in messages:
        template = pl.select(mask_variables(pl.lit(message))).item()
        matching = {outcome for outcome, report in REPORTS.items() if report.search(template)}
        assert matching == set(table(message)["outcome"]) - {ACCEPTED}, template


def test_a_name_that_pretends_to_come_from_elsewhere() -> None:
    """The client chooses the user's name, so the last address is the one that is true."""
    message = "Failed password for invalid user x from 1.1.1.1 port 1 from 2.2.2.2 port 9 ssh2"
    assert found(message) == {("2.2.2.2", "x from 1.1.1.1 port 1", "failed", 1)}


def test_what_pam_says_and_who_else() -> None:
    failure = "authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=218.188.2.4 "
    assert found(failure, component="sshd(pam_unix)") == {("218.188.2.4", None, "refused", 1)}
    assert found(f"pam_unix(sshd:auth): {failure} user=root") == {
        ("218.188.2.4", "root", "refused", 1)
    }
    assert found("Failed password for root from 1.1.1.1 port 3 ssh2", component="ftpd") == set()


def failures(address: str, count: int, user: str = "root") -> list[str]:
    return [f"Failed password for {user} from {address} port 1 ssh2"] * count


def test_sp_2_intruders_and_whether_one_got_in() -> None:
    messages = [
        *failures("1.1.1.1", LEAST_FAILURES),
        *failures("1.1.1.1", 2, "admin"),
        *failures("2.2.2.2", LEAST_FAILURES - 1),  # somebody mistypes
        "Accepted password for olga from 3.3.3.3 port 1 ssh2",  # before the failures
        *failures("3.3.3.3", LEAST_FAILURES),
        *failures("4.4.4.4", LEAST_FAILURES),
        "Accepted password for git from 4.4.4.4 port 1 ssh2",
        "pam_unix(sshd:auth): authentication failure; x rhost=1.1.1.1  user=root",
    ]
    got_in, first, second = intruders(table(*messages))
    assert (got_in.address, got_in.entered_as) == ("4.4.4.4", ("git",))
    assert (first.address, first.failures, first.users) == ("1.1.1.1", LEAST_FAILURES + 2, 2)
    assert first.names == ("root", "admin") and first.entered_as == ()
    assert (second.address, second.entered_as) == ("3.3.3.3", ())


def test_older_systems_where_only_pam_speaks() -> None:
    line = "authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=9.9.9.9  user=root"
    (found,) = intruders(table(*[line] * 6, component="sshd(pam_unix)"))
    assert (found.address, found.failures) == ("9.9.9.9", 6)
    assert intruders(table()) == []
