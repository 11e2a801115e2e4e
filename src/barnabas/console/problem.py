"""Defines the console's web errors, and maps client errors to HTTP status codes."""

from __future__ import annotations

from typing import Final

from barnabas.cli.complaint import explain
from barnabas.client.errors import (
    AUTHENTICATION_ERRORS,
    NoAnswer,
    UnknownPartition,
    Unreachable,
)
from barnabas.errors import (
    BarnabasError,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)

FAILURES: Final = (BarnabasError, OSError)
"""The errors that a query to the brokers may raise. OSError covers TimeoutError."""

_STATUSES: Final[tuple[tuple[tuple[type[Exception], ...], int], ...]] = (
    ((UnknownTopicOrPartition, UnknownPartition, GroupIdNotFound), 404),
    ((ClusterAuthorizationFailed, GroupAuthorizationFailed, TopicAuthorizationFailed), 403),
    (AUTHENTICATION_ERRORS, 403),
    ((NoAnswer, TimeoutError), 504),
    ((Unreachable, BarnabasError, OSError), 502),
)


class WebProblem(Exception):
    """Raised if a request is refused or fails. The text is sent in the `Problem` that answers the
    request.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def problem_of(error: Exception) -> WebProblem:
    """Return the web problem that corresponds to a client error or a timeout."""
    if isinstance(error, WebProblem):
        return error
    status = next((status for kinds, status in _STATUSES if isinstance(error, kinds)), 502)
    return WebProblem(status, reason_of(error))


def reason_of(error: Exception) -> str:
    """Return an error's text, with any advice."""
    if isinstance(error, TimeoutError) and not str(error):
        return "the brokers did not answer in time; `barnabas cluster health` shows who is missing"
    return " ".join(explain(error).split())
