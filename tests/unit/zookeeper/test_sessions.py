"""The expiry of ZooKeeper sessions, and their ids."""

from __future__ import annotations

from barnabas.zookeeper.sessions import Session, Sessions


def open_session(sessions: Sessions) -> Session:
    session = Session(sessions.new_id(), 2000, b"password")
    sessions.open(session)
    session.touch(10.0)
    return session


def test_a_session_expires_after_its_timeout_unless_it_is_touched_or_postponed() -> None:
    sessions = Sessions(1000, 5000)
    session = open_session(sessions)
    assert list(sessions.past_deadline(11.9)) == []
    assert list(sessions.past_deadline(12.0)) == [session.session_id]
    session.touch(11.0)
    assert list(sessions.past_deadline(12.9)) == []
    sessions.postpone(3.0)
    assert list(sessions.past_deadline(15.9)) == []
    assert list(sessions.past_deadline(16.0)) == [session.session_id]


def test_ids_are_not_reused() -> None:
    sessions = Sessions(1000, 5000)
    first = open_session(sessions)
    sessions.close(first.session_id)
    sessions.open(Session(100, 2000, b"restored"))
    sessions.close(100)
    sessions.begin_after(50)
    assert first.session_id == 1
    assert sessions.new_id() == 101
    sessions.begin_after(200)
    assert sessions.new_id() == 201
