"""The hosts that referrers name. Pure."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from barnabas_pipeline.distinct import of_each

_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^\]/?#]+\]|[^/?#:]+)")


def host_of(url: str | None) -> str | None:
    """The host that a referrer names, without port and leading "www."; None if there is none."""
    match = None if url is None else _HOST.match(url)
    host = match[1].lower().removeprefix("www.") if match else ""
    return host or None


def hosts_of(urls: pl.Series) -> pl.Series:
    """The same for many, each parsed once."""
    return of_each(urls, host_of, pl.String)
