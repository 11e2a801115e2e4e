"""Masks the variable parts of messages: addresses, numbers, times, identifiers and paths.

Masking is what makes finding templates fast: it reduces a million lines to a few hundred distinct
texts, and only these texts are processed one by one. If a variable part is not masked, every
message becomes a separate template. If a constant part is masked, different messages are merged
into one template. A mask must therefore match only text that cannot be a word, such as a number
with a known unit, or a hash that consists of letters and digits.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_IPV4: Final = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
_IP: Final = rf"/?\b{_IPV4}(?::[0-9]+)?\b"
_H: Final = r"[0-9a-fA-F]{1,4}"
# The prefixes of addresses in use: global unicast (2000::/3), unique local, multicast, link-local
# and NAT64. Text with any other prefix (`abc::def`) remains a name.
_GROUP: Final = r"(?:[23][0-9a-fA-F]{3}|[fF][cdfCDF][0-9a-fA-F]{2}|[fF][eE][89abAB][0-9a-fA-F]|64)"
_ZONE: Final = r"(?:%[0-9A-Za-z]+)?"

_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_UNIT: Final = (
    r"(?:ns|us|µs|μs|ms|msecs?|millis|micros|nanos|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?"
    r"|days?|w|wks?|weeks?|bytes?|B|[kKMGT]i?[bB]?|[PE]i?B|[kKMGT]i?bps|[kKMG]?bits?|[kMG]?Hz"
    r"|px|rpm|rps|qps|m?V|[mk]?W|°C|EUR|USD|GBP|CHF|JPY)"
)
_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY: Final = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?"
# Seven or more letters and digits in the same case: two alternatives for each length of the first
# part.
_HASH: Final = "|".join(
    rf"{first}{{{length},{'' if length == 7 else length}}}{second}{rest}{{{max(0, 6 - length)},}}"
    for letter, rest in (("[a-f]", "[0-9a-f]"), ("[A-F]", "[0-9A-F]"))
    for first, second in (("[0-9]", letter), (letter, "[0-9]"))
    for length in range(1, 8)
)
_WORD: Final = r"[A-Za-z_./-]*"
_MASKS: Final = (
    (r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "<id>"),
    (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "<id>"),  # a ULID, until 2039
    (r"\bblk_-?[0-9]+\b", "<id>"),  # a block of HDFS
    (
        r"\b[0-9]{4}-?[0-9]{2}-?[0-9]{2}[T_][0-9]{2}[:-]?[0-9]{2}(?:[:-]?[0-9]{2}(?:[.,][0-9]+)?)?"
        r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?\b",
        "<time>",
    ),
    (r"\bP(?:[0-9]+[YMWD])*(?:T(?:[0-9]+(?:\.[0-9]+)?[HMS])+|[0-9]+[YMWD])\b", "<num>"),
    # Dates with a month's name.
    (
        rf"\b{_WEEKDAY}(?:{_MONTH} +[0-9]{{1,2}}(?:, [0-9]{{4}})?"
        rf"|[0-9]{{1,2}}([ /-]){_MONTH}[ /-][0-9]{{4}})\b",
        "<time>",
    ),
    (r"\b[0-9]{1,2}(?::[0-9]{2}){1,2} ?[AaPp][Mm]\b", "<time>"),
    (r"\b[0-9]{4}-W[0-9]{2}(?:-[1-7])?\b", "<time>"),
    (r"\b[0-9a-fA-F]{4}(?::[0-9a-fA-F]{2}){2}\.[0-7]\b", "<hex>"),  # a PCI device
    (r"\b[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2}\b", "<mac>"),
    (r"\b[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,}\b", "<mac>"),  # also fingerprints
    (r"\b[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}\b", "<mac>"),
    (rf"\b(?:{_H}:){{7}}{_H}\b{_ZONE}", "<ip>"),
    (rf"\b{_GROUP}(?::{_H}){{0,6}}::(?:(?:{_H}:){{0,5}}(?:{_IPV4}|{_H})\b{_ZONE})?", "<ip>"),
    (rf"(^|[^\w:])::(?:[fF]{{4}}:{_IPV4}|[0-9]{{1,4}})\b", "${1}<ip>"),
    (rf"{_IP}(?:,{_IP})*", "<ip>"),
    # A systemd unit is not a mail address, and its instance is variable.
    (r"@[\w:.\\-]+\.(service|socket|mount|slice|scope|target|timer)\b", "@<id>.$1"),
    (r"\b[\p{L}0-9][\p{L}0-9._%+-]*@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b", "<mail>"),
    (r"""(^|[\s"'(=\[,:])(?:/[^\s"'(),:;\[\]]+)+""", "${1}<path>"),
    (r"\b0[xX][0-9a-fA-F]+\b", "<hex>"),
    (r"\b0(?:b[01]+|o[0-7]+)\b", "<num>"),
    (r"(\.[A-Z][\w$]*)@[0-9a-f]{1,8}\b", "$1@<hex>"),  # a Java object
    (r"\b[0-9]{1,3}(?:_[0-9]{3})+\b", "<num>"),
    (r"\b[0-9]+x[0-9]+\b", "<num>"),  # the size of an image
    (r"\b(EUR|USD|GBP|CHF|JPY)[0-9]+\b", "${1}<num>"),
    (r"([A-Za-z]_)[0-9]+(?:_[0-9]+)*\b", "${1}<num>"),
    # Numbers in file and host names, directly before a dot or a slash.
    (r"\b([A-Za-z][A-Za-z_-]*)[0-9]+((?:\.[A-Za-z][\w-]*)+|/)", "${1}<num>$2"),
    (r"\b[0-9a-fA-F]{16,}\b", "<hex>"),
    (
        rf"\b(?:[0-9]+\.[0-9]+[eE][-+]?[0-9]+|[0-9]{{1,3}}[eE][-+]?[0-9]{{1,3}}"
        rf"|(?:[0-9]+d)?(?:{_NUMBER}{_UNIT})+)\b",
        "<num>",
    ),
    (r"\b[0-9]+d( +<num>)", "<num>$1"),  # days in front of hours; `3d` may be a word
    # Key types, and words such as `face2face`, are not hashes.
    (r"(?i)\b(ed|[a-f]{3,})(25519|2[a-f]{3,})\b", "${1}_$2"),
    (rf"\b(?:{_HASH})\b", "<hex>"),
    (r"(?i)\b(ed|[a-f]{3,})_(25519|2[a-f]{3,})\b", "$1$2"),
    (r"\b\p{Nd}+(?:\.\p{Nd}+)*\b", "<num>"),  # in any script
    (r"(^|[\s=(\[,:])[-+]<num>", "${1}<num>"),
    (rf"""(["'`“‘]{_WORD})[0-9]+(?:\.[0-9]+)*({_WORD}["'`”’])""", "${1}<num>$2"),
    (r"""(["'`])[A-Za-z_.-]+[0-9][A-Za-z0-9_.-]*(["'`])""", "${1}<id>$2"),
)
LONGEST: Final = 2_000
"""The number of characters at the start of a message that are used to determine its template."""


def mask_variables(message: pl.Expr) -> pl.Expr:
    """Replace the variable parts of messages with `<ip>`, `<num>` and the like."""
    masked = message.str.slice(0, LONGEST)
    for regex, replacement in _MASKS:
        masked = masked.str.replace_all(regex, replacement)
    return masked
