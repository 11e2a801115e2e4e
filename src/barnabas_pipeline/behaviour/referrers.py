"""Extracts the hosts from referrers. Pure."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from barnabas_pipeline.distinct import of_each

_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^\]/?#]+\]|[^/?#:]+)")


def host_of(url: str | None) -> str | None:
    """Return the host in a referrer, without port and leading "www.", or None if there is none."""
    match = None if url is None else _HOST.match(url)
    host = match[1].lower().removeprefix("www.") if match else ""
    return host or None


def hosts_of(urls: pl.Series) -> pl.Series:
    """Return the hosts of many referrers, parsing each distinct one once."""
    return of_each(urls, host_of, pl.String)
