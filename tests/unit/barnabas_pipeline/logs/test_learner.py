"""The learner: which messages share a template, and that these are always the same (SP-2)."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.logs.learner import outline
from barnabas_pipeline.logs.templates import Template, Templates

WORDS = ["up", "down", "user", "olga", "<num>", "<hex>", "<*>", "<>", "a7", "id=<num>", "()"]
MESSAGES = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), max_size=40)


def ids(messages: list[str]) -> list[str | None]:
    known = Templates()
    found = [known.learn("f", each) for each in messages]
    return [each and each.id for each in found]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("took <num> ms", "took <hex> ms"),
        ("copied node-a7.db fully", "copied x9 fully"),
        ("state of com.example.shop is good", "state of org.example.mail is good"),
        ('opened "here" now', 'opened "there" now'),
        ("no user olga here", "no user user here"),
        ("it has host=one and more", "it has host=two and more"),
        ("from <ip> (db.example.org) at", "from <ip> () at"),
        ("reading ./one failed", "reading ./two/three failed"),
    ],
)
def test_messages_that_differ_in_a_value_share_a_template(first: str, second: str) -> None:
    assert len(set(ids([first, second]))) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "[instance: <id>] VM Started (Lifecycle Event)",
            "[instance: <id>] VM Paused (Lifecycle Event)",
        ),
        ("up", "down"),
        ("user=<num> set", "limit=<num> set"),
        ("seen <num> times", "seen many times"),
        ("a b", "a b c"),
    ],
)
def test_messages_that_differ_in_a_plain_word_do_not(first: str, second: str) -> None:
    assert len(set(ids([first, second]))) == 2


def test_a_word_with_many_values_is_variable() -> None:
    """The lines already stored keep their templates; later ones share the first."""
    names = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"]
    found = ids([f"removing {name} again" for name in names])
    assert len(set(found[:5])) == 5
    assert set(found[5:]) == {found[0]}
    assert len(set(ids(names))) == len(names), "a message of one word says nothing about it"


@given(MESSAGES)
def test_sp_2_a_restart_at_any_message_changes_nothing(messages: list[str]) -> None:
    """SP-2: ids and texts are those of a learner that was never rebuilt."""
    straight, restarted = Templates(), Templates()
    stored: dict[str, Template] = {}
    for message in messages:
        found = restarted.learn("f", message)
        assert found is not None
        assert found == straight.learn("f", message)
        stored[found.id] = found
        restarted = pickle.loads(pickle.dumps(Templates(stored.values())))
    for message in messages:
        found_id = straight.find("f", message)
        assert found_id is not None and found_id == restarted.find("f", message)


@given(MESSAGES)
def test_sp_2_what_is_learnt_does_not_depend_on_where_batches_end(messages: list[str]) -> None:
    """SP-2: nor does it depend on whether a message that is known is learnt again."""
    known = Templates()
    found = []
    for message in messages:
        found_id = known.find("f", message)
        learnt = None if found_id else known.learn("f", message)
        found.append(learnt.id if learnt else found_id)
    assert found == ids(messages)


@given(st.text(max_size=40))
def test_an_outline_has_a_place_for_each_word(message: str) -> None:
    words = message.split()
    assert len(outline(words)) == len(words)
