"""IN-6: passwords cannot be tried as fast as one likes, and sessions are few and end."""

from __future__ import annotations

import pytest

from barnabas.console.problem import WebProblem
from barnabas.console.sign_in.admission import (
    MOST_ATTEMPTS,
    MOST_OF_ADDRESS,
    MOST_OF_USER,
    WINDOW_S,
    Attempts,
    Lifetime,
    SessionBook,
)


class Hands:
    now_s = 100.0

    def read(self) -> float:
        return self.now_s


def test_a_user_has_few_attempts_in_a_minute() -> None:
    clock = Hands()
    attempts = Attempts(clock.read)
    for _ in range(MOST_ATTEMPTS):
        attempts.begin("10.0.0.1", "alice")
    clock.now_s += 20
    with pytest.raises(WebProblem, match="try again in 40 s") as raised:
        attempts.begin("10.0.0.1", "alice")
    assert raised.value.status == 429
    attempts.begin("10.0.0.1", "bob")
    attempts.begin("10.0.0.2", "alice")
    clock.now_s += WINDOW_S - 20
    attempts.begin("10.0.0.1", "alice")


def test_an_address_cannot_try_many_users() -> None:
    attempts = Attempts(lambda: 0.0)
    for number in range(MOST_OF_ADDRESS):
        attempts.begin("10.0.0.1", f"user{number}")
    with pytest.raises(WebProblem, match="too many attempts"):
        attempts.begin("10.0.0.1", "another")


def test_what_was_no_wrong_password_does_not_count() -> None:
    attempts = Attempts(lambda: 0.0)
    for _ in range(3 * MOST_OF_ADDRESS):
        attempts.begin("10.0.0.1", "alice")
        attempts.forgive("10.0.0.1", "alice")
    attempts.begin("10.0.0.1", "alice")


def test_a_session_ends_when_nobody_asks_and_after_its_longest_time() -> None:
    clock, (idle_s, longest_s) = Hands(), Lifetime()
    book: SessionBook[str] = SessionBook(now_s=clock.read)
    idle, _ = book.add("alice", "idle")
    busy, _ = book.add("alice", "busy")
    assert book.remove_expired() == []
    ends_s = clock.now_s + longest_s
    while clock.now_s < ends_s - idle_s:
        clock.now_s += idle_s - 1
        assert book.find(busy) == "busy"
    for _ in range(2):  # before and after its removal
        assert book.find(idle) is None
        assert book.why_ended(idle) == "after 30 minutes without a request"
        book.remove_expired()
    clock.now_s = ends_s
    assert (book.find(busy), book.remove_expired(), book.values()) == (None, ["busy"], [])


def test_the_oldest_session_of_a_user_makes_room() -> None:
    book: SessionBook[int] = SessionBook()
    other, _ = book.add("bob", -1)
    tokens = [book.add("alice", number)[0] for number in range(MOST_OF_USER)]
    newest, replaced = book.add("alice", 99)
    assert (replaced, book.find(tokens[0]), book.find(tokens[1])) == ([0], None, 1)
    assert (book.find(newest), book.find(other)) == (99, -1)


def test_a_token_is_unknown_after_its_removal() -> None:
    book: SessionBook[int] = SessionBook()
    token, _ = book.add("bob", 1)
    assert (book.find(""), book.find(token + "x"), book.find(token)) == (None, None, 1)
    assert (book.remove(token), book.remove(token), book.find(token)) == (1, None, None)
    book.add("bob", 2)
    assert (book.remove_if(lambda value: value == 2), book.values()) == ([2], [])


def test_why_a_session_has_ended_is_known() -> None:
    clock = Hands()
    book: SessionBook[int] = SessionBook(Lifetime(5, 90), clock.read)
    tokens = [book.add("alice", number)[0] for number in range(MOST_OF_USER + 1)]
    assert book.why_ended(tokens[0]) == "because its user has more than 4 sessions"
    book.remove_if(lambda value: value == 1)
    assert book.why_ended(tokens[1]) == "because the cluster no longer admits its user"
    clock.now_s += 5
    assert book.why_ended(tokens[2]) == "after 5 seconds without a request"
    clock.now_s += 85
    assert book.why_ended(tokens[2]) == "after 90 seconds"
    assert book.why_ended("x") == "or the console has restarted"
