"""Masks the variable parts of messages: addresses, numbers, identifiers, paths.

Masking first makes templates fast: a million lines become a few hundred distinct texts, and only
those are processed one by one.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_IP: Final = r"/?\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]+)?\b"
_MASKS: Final = (
    (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<id>"),
    (r"\bblk_-?[0-9]+\b", "<id>"),  # a block of HDFS
    (rf"{_IP}(?:,{_IP})*", "<ip>"),
    (r"\b(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\b", "<ip>"),
    (r"""(^|[\s"'(=\[,:])(?:/[^\s"'(),:;\[\]]+)+""", "${1}<path>"),
    (r"\b0x[0-9a-fA-F]+\b", "<hex>"),
    (r"\b[0-9a-fA-F]{16,}\b", "<hex>"),
    (r"\b[0-9]+(?:\.[0-9]+)*\b", "<num>"),
    (r"(^|[\s=(\[,:])[-+]<num>", "${1}<num>"),
)
LONGEST: Final = 2_000
"""Characters of a message that count for its template."""


def masked(message: pl.Expr) -> pl.Expr:
    """The messages with `<ip>`, `<num>` and the like for variable parts."""
    masked = message.str.slice(0, LONGEST)
    for regex, replacement in _MASKS:
        masked = masked.str.replace_all(regex, replacement)
    return masked
