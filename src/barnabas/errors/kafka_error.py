"""Defines the base classes of the errors that Barnabas raises on purpose, and functions that
examine errors.

The errors of Kafka's protocol are subclasses of `KafkaError`. They are defined in the other files
of this folder, each with its code, except for the one that represents all unknown codes, which is
defined here.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Final

NONE = 0
"""The code for success. It has no class because it is never raised."""

_COLOUR: Final = r"\x1b\[\d*m"  # compiled on use: no broker that starts needs it
_CAUSE: Final = "↳"  # how deltalake begins the line of a cause


class BarnabasError(Exception):
    """The root of all errors that Barnabas raises on purpose."""


class CorruptData(BarnabasError):
    """Malformed bytes, from a peer or from a disk."""


class ConfigError(BarnabasError):
    """An invalid setting; the message names the setting, the reason and what to do."""


def is_out_of_descriptors(error: OSError) -> bool:
    """Return whether the error says that the process or the machine has too many open files, which
    is not a disk failure.
    """
    return error.errno in (errno.EMFILE, errno.ENFILE)


def in_one_line(error: Exception) -> str:
    """Return the text of an error and of its causes, without the stack that a library appends."""
    first, *rest = str(error).splitlines() or [type(error).__name__]
    plain = (re.sub(_COLOUR, "", line).strip() for line in rest)
    causes = [line.removeprefix(_CAUSE).strip() for line in plain if line.startswith(_CAUSE)]
    return ": ".join([first.strip(), *causes])


class KafkaError(BarnabasError):
    """An error of Kafka's protocol. If it has no message, its text is its `meaning`.

    `retriable` says whether the same request may succeed later without changes. `record_errors`
    contains the indexes of the invalid records in a produced batch, each with a description of the
    problem (KIP-467).
    """

    code: ClassVar[int]
    name: ClassVar[str]  # as Kafka writes it: "UNKNOWN_TOPIC_OR_PARTITION"
    retriable: ClassVar[bool]
    meaning: ClassVar[str]
    record_errors: Sequence[tuple[int, str]] = ()

    def __init_subclass__(cls, *, code: int, retriable: bool = False, name: str = "") -> None:
        cls.code = code
        cls.name = name or _constant_case(cls.__name__)
        cls.retriable = retriable
        cls.meaning = cls.__doc__ or cls.name

    def __init__(self, message: str | None = None) -> None:
        super().__init__(self.meaning if message is None else message)


def _constant_case(class_name: str) -> str:
    """Return "NOT_CONTROLLER" for `NotController`."""
    return "".join([f"_{c}" if c.isupper() else c for c in class_name]).lstrip("_").upper()


class UnknownServerError(KafkaError, code=-1):
    """The broker encountered an error for which it has no code; see its log."""


@cache
def _by_code() -> dict[int, type[KafkaError]]:
    # Called only after the package has been imported, so every row is a subclass by then.
    return {error.code: error for error in KafkaError.__subclasses__()}


def error_for_code(code: int) -> type[KafkaError]:
    """Return the class for `code`, or `UnknownServerError` for an unknown code from a newer peer.

    The code must not be 0, which is not an error.
    """
    assert code != NONE
    return _by_code().get(code, UnknownServerError)
