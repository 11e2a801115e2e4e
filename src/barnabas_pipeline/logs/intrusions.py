"""Finds attempts to break in over SSH, which come from addresses with many failed logins. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

import polars as pl

from barnabas_pipeline.logs.logins import ACCEPTED, FAILED, REFUSED

LEAST_FAILURES: Final = 5
"""The minimum number of failures in an hour. A mistyped password causes fewer failures."""
_NAMES: Final = 3


class Logins(NamedTuple):
    """Counts the login attempts from one address."""

    address: str
    failed: int
    accepted: int
    first: datetime
    last: datetime


class Intruder(NamedTuple):
    """An address that guessed passwords."""

    address: str
    failures: int
    users: int
    names: tuple[str, ...]  # the user names tried most often
    first: datetime
    last: datetime
    entered_as: tuple[str, ...]
    """The users who logged in from this address after a failed attempt."""
    hosts: tuple[str, ...] = ()
    """The hosts to which these users logged in."""


def failures(logins: pl.DataFrame) -> pl.DataFrame:
    """Return the failed attempts in the merged table `logins`, each counted only once."""
    by_sshd = logins.filter(pl.col("outcome") == FAILED)
    by_pam = logins.filter(pl.col("outcome") == REFUSED)
    # If sshd logs its failures, PAM's failures are the same attempts.
    failed = pl.concat(
        [by_sshd, by_pam.join(by_sshd.select("host").unique(), "host", "anti", nulls_equal=True)]
    )
    return failed.filter(pl.col("address").is_not_null())


def by_address(logins: pl.DataFrame) -> list[Logins]:
    """Return the attempts in the merged table `logins`, the most failures first."""
    accepted = logins.filter(pl.col("outcome") == ACCEPTED)
    rows = (
        pl.concat(
            [
                failures(logins).with_columns(pl.lit(True).alias("is_failed")),
                accepted.with_columns(pl.lit(False).alias("is_failed")),
            ]
        )
        .group_by("address")
        .agg(
            pl.col("attempts").filter("is_failed").sum().alias("failed"),
            pl.col("attempts").filter(~pl.col("is_failed")).sum().alias("accepted"),
            pl.col("first").min(),
            pl.col("last").max(),
        )
        .sort("failed", "accepted", "address", descending=[True, True, False])
    )
    return [Logins(*row) for row in rows.iter_rows()]


def intruders(logins: pl.DataFrame) -> list[Intruder]:
    """Return the intruders in the merged table `logins`: successful ones first, then the most
    failures."""
    failed = failures(logins)
    accepted = logins.filter(pl.col("outcome") == ACCEPTED)
    hourly = failed.group_by("address", "hour").agg(pl.col("attempts").sum())
    many = hourly.filter(pl.col("attempts") >= LEAST_FAILURES)["address"].unique()
    found = []
    for (address,), rows in failed.filter(pl.col("address").is_in(many.implode())).group_by(
        ["address"]
    ):
        by_user = (
            rows.drop_nulls("user")
            .group_by("user")
            .agg(pl.col("attempts").sum())
            .sort("attempts", "user", descending=[True, False])
        )
        first = rows["first"].min()
        came_in = accepted.filter((pl.col("address") == address) & (pl.col("last") >= first))
        found.append(
            Intruder(
                str(address),
                int(rows["attempts"].sum()),
                by_user.height,
                tuple(by_user["user"].head(_NAMES)),
                first,  # type: ignore[arg-type]
                rows["last"].max(),  # type: ignore[arg-type]
                tuple(came_in["user"].drop_nulls().unique().sort()),
                tuple(came_in["host"].drop_nulls().unique().sort()),
            )
        )
    return sorted(found, key=lambda each: (not each.entered_as, -each.failures, each.address))
