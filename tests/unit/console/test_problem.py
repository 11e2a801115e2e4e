"""Errors of clients, as a browser gets them."""

from __future__ import annotations

import pytest

from barnabas.client.errors import NoAnswer, NoBrokersAvailable
from barnabas.console.problem import WebProblem, problem_of
from barnabas.errors import TopicAuthorizationFailed, UnknownTopicOrPartition


@pytest.mark.parametrize(
    ("error", "status", "part"),
    [
        (NoBrokersAvailable("127.0.0.1:1: refused"), 502, "127.0.0.1:1: refused"),
        (NoAnswer("broker 1 did not answer"), 504, "broker 1"),
        (TimeoutError(), 504, "did not answer in time"),
        (UnknownTopicOrPartition("topic 'x'"), 404, "topic 'x'"),
        (TopicAuthorizationFailed("topic 'x'"), 403, "TOPIC_AUTHORIZATION_FAILED"),
        (OSError(5, "broken"), 502, "broken"),
        (WebProblem(503, "too many"), 503, "too many"),
    ],
)
def test_an_error_has_a_status_and_says_what_happened(
    error: Exception, status: int, part: str
) -> None:
    found = problem_of(error)
    assert (found.status, part in str(found)) == (status, True)
