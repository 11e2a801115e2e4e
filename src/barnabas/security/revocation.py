"""Reads lists of revoked certificates (CRLs, RFC 5280) from a file or a directory.

If there are lists, a certificate is accepted only if there is a list from every authority above it
and no list contains the certificate. A list that has expired or cannot be read is an error, and is
never treated as empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.security.der import SEQUENCE, elements
from barnabas.security.file_stamps import files_in
from barnabas.security.pem import PemBlock, der_of, pem_blocks, pem_of

_LABEL = "X509 CRL"
_TIMES = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}  # UTCTime, GeneralizedTime


def load_revocation_lists(setting: str, location: str) -> str:
    """Return the lists at the configured location as PEM. Raises ConfigError, whose message names
    the setting and the location.
    """
    try:
        path = Path(location)
        files = files_in(path) if path.is_dir() else [path]
        contents = [(file, file.read_bytes()) for file in files]
    except OSError as error:
        raise ConfigError(f"{setting}={location} cannot be read: {error.strerror}") from None
    texts = []
    for file, content in contents:
        where = f"{setting}={location}" + (f": {file.name}" if path.is_dir() else "")
        texts += [_check(block, where) for block in _lists(content, where)]
    if not texts:
        raise ConfigError(f"{setting}={location}: there is no PEM certificate revocation list")
    return "".join(texts)


def next_update(revocation_list: bytes) -> datetime | None:
    """Return the time by which a DER list must be replaced, or None if it contains no such time.

    Raises ValueError."""
    try:
        (whole,) = elements(revocation_list)
        body = next(elements(whole.content))
        times = [each for each in elements(body.content) if each.tag in _TIMES]
    except (ValueError, StopIteration):
        raise ValueError("this is not a certificate revocation list") from None
    if whole.tag != SEQUENCE or not times:
        raise ValueError("this is not a certificate revocation list")
    # RFC 5280 requires nextUpdate, but some authorities omit it. A list without it never expires.
    if len(times) == 1:
        return None
    _, last = times
    return datetime.strptime(last.content.decode("ascii"), _TIMES[last.tag]).replace(tzinfo=UTC)


def _lists(content: bytes, where: str) -> Iterator[PemBlock]:
    """Yield the lists in a file.

    The file is in PEM or in DER, the format in which authorities publish lists.
    """
    if content[:1] == bytes((SEQUENCE,)):
        yield PemBlock(_LABEL, pem_of(_LABEL, content))
        return
    try:
        blocks = pem_blocks(content.decode("ascii", "replace"))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    yield from (block for block in blocks if block.label == _LABEL)


def _check(block: PemBlock, where: str) -> str:
    try:
        end = next_update(der_of(block))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    # A certificate may have been stolen after the list was issued, so an expired list must not be
    # used.
    if end is not None and end <= datetime.now(UTC):
        raise ConfigError(
            f"{where}: this certificate revocation list expired at "
            f"{end:%Y-%m-%d %H:%M} UTC: get the authority's new list"
        )
    return block.text
