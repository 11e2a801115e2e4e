"""Turns lines of an access log into events, so that both fill the same tables (BT-3).

    a page view by a person or a robot      ─▶ `pageview`
    a response with a status of 400 or more ─▶ `error`, with the status as a property
    any other hit, such as an image         ─▶ no event; its line is counted as valid

A visitor is an address plus a user agent, as in the tables of access logs, but only a hash of both
is kept. The hash is keyed with a secret of the output directory, because otherwise, whoever has the
tables could try all addresses.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from barnabas.errors import ConfigError
from barnabas_pipeline.behaviour.lines import parse_hits
from barnabas_pipeline.tracking.counts import ERROR
from barnabas_pipeline.tracking.envelope import FIELDS, parts_of_query, referring_host, tidy_path
from barnabas_pipeline.tracking.schemas import PAGE_VIEW

_KEY_BYTES: Final = 32
_ID_BYTES: Final = 15
_LEAST_ERROR: Final = 400
_KEY_FILE: Final = "visitors.key"


def access_events(lines: pl.DataFrame, key: bytes) -> pl.DataFrame:
    """Return a row of `FIELDS` for each line. A valid line that is no event has no `name`.

    `lines`: the columns of `places.locate`.
    """
    hits = parse_hits(lines)
    rows = [
        _event(hit, key)
        for hit in pl.concat(
            [lines.select("file_id", "position"), hits], how="horizontal"
        ).to_dicts()
    ]
    columns = {name: [row.get(name) for row in rows] for name in FIELDS}
    return pl.DataFrame(columns, schema=dict(FIELDS))


def visitors_key(directory: Path) -> bytes:
    """Return the secret of an output directory, which is created if it does not exist.

    Raises ConfigError.
    """
    path = directory / _KEY_FILE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            new = path.with_name(f".{_KEY_FILE}.{os.getpid()}")
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
                file.flush()
                os.fsync(descriptor)
            new.replace(path)
        key = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; choose another --out") from error
    if len(key) != _KEY_BYTES:
        raise ConfigError(
            f"{path} has {len(key)} bytes instead of {_KEY_BYTES}: restore it, or choose another "
            "--out. With another key, everybody would be a new visitor"
        )
    return key


def _event(hit: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    if hit["reason"] is not None:
        return {"reason": hit["reason"]}
    status = hit["status"]
    is_error = status is not None and status >= _LEAST_ERROR
    if not hit["page_view"] and not is_error:
        return {}
    host = (hit["virtual_host"] or "").lower().removeprefix("www.") or None
    found: dict[str, Any] = {
        "id": _hash(key, hit["file_id"], hit["position"]),
        "time_us": hit["time_us"],
        "received_us": hit["time_us"],
        "name": ERROR if is_error else PAGE_VIEW,
        "visitor": _hash(key, hit["client"], hit["agent"]),
        "host": host,
        "path": tidy_path(hit["path"]),
        "query": hit["query"],
        **parts_of_query(hit["query"] or ""),
        "referrer": referring_host(hit["referrer"], host),
        "robot": hit["robot"],
        "page_view": hit["page_view"],
    }
    if is_error:
        found["properties"] = json.dumps({"status": status}, separators=(",", ":"))
    return found


def _hash(key: bytes, *parts: object) -> str:
    text = json.dumps(parts).encode()
    return hashlib.blake2b(text, digest_size=_ID_BYTES, key=key).hexdigest()
