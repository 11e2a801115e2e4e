"""Extracts SSH login attempts from the messages of `sshd` and PAM. Pure.

outcome    accepted   a login succeeded
           failed     a password or key was refused
           refused    PAM reported a failure: on older systems, where `sshd` does not log it
                      itself, this is the only line; elsewhere, it is the same attempt again
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

ACCEPTED: Final = "accepted"
FAILED: Final = "failed"
REFUSED: Final = "refused"
SSHD: Final = "sshd"
"""How the names of the components begin that report logins. They include `sshd-session`, used since
OpenSSH 9.8, and `sshd(pam_unix)` on older systems.
"""

# The last " from " counts, because the user name comes from the client and may contain blanks.
_SSHD: Final = (
    r"^(?:message repeated (?<times>[0-9]{1,9}) times: \[ ?)?"
    r"(?<what>Accepted|Failed) \S+ for (?:invalid user |illegal user )?(?<user>.*)"
    r" from (?<address>\S+) port [0-9]+"
)
_PAM: Final = (
    r"^(?:\S+ )?authentication failure; .*\brhost=(?<address>\S+)(?: +user=(?<user>.*))? *$"
)
REPORTS: Final = {
    FAILED: re.compile(r"^(?:message repeated \S+ times: \[ ?)?Failed \S+ for .* from \S+ port "),
    REFUSED: re.compile(r"^(?:\S+ )?authentication failure; .*\brhost=\S"),
}
"""Match the templates of the messages that report a failure, by its outcome."""


def logins(entries: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts in these entries, which must have `hour`, `first`, `last` and `day`,
    added up in schema `LOGINS`."""
    ours = entries.filter(pl.col("component").str.starts_with(SSHD))
    found = ours.select(
        "hour",
        "first",
        "last",
        "day",
        "host",
        pl.col("message").str.extract_groups(_SSHD).alias("sshd"),
        pl.col("message").str.extract_groups(_PAM).alias("pam"),
    )
    sshd, pam = pl.col("sshd").struct, pl.col("pam").struct
    outcome = (
        pl.when(sshd.field("what") == "Accepted")
        .then(pl.lit(ACCEPTED))
        .when(sshd.field("what") == "Failed")
        .then(pl.lit(FAILED))
        .when(pam.field("address").is_not_null())
        .then(pl.lit(REFUSED))
    )
    return added_up(
        found.select(
            "hour",
            "host",
            pl.coalesce(sshd.field("address"), pam.field("address")).alias("address"),
            pl.coalesce(sshd.field("user"), pam.field("user")).str.strip_chars().alias("user"),
            outcome.alias("outcome"),
            sshd.field("times").cast(pl.Int64, strict=False).fill_null(1).alias("attempts"),
            "first",
            "last",
            "day",
        ).filter(pl.col("outcome").is_not_null())
    )


def added_up(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.group_by("hour", "host", "address", "user", "outcome", "day").agg(
        pl.col("attempts").sum(), pl.col("first").min(), pl.col("last").max()
    )
