"""Names of users and client ids, as the metadata tree has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.quotas.entity import Entity, decode_name, encode_name, entity_of


@pytest.mark.parametrize(
    ("name", "in_the_tree"),
    [
        ("alice", "alice"),
        ("a b", "a%20b"),
        ("a*b+c/d", "a%2Ab%2Bc%2Fd"),
        ("CN=a, O=~b", "CN%3Da%2C%20O%3D%7Eb"),
        ("x.y-z_1", "x.y-z_1"),
        ("Zoë", "Zo%C3%AB"),
        ("<default>", "%3Cdefault%3E"),
        (None, "<default>"),
    ],
)
def test_se_5_names_are_encoded_as_kafka_does(name: str | None, in_the_tree: str) -> None:
    assert encode_name(name) == in_the_tree
    assert decode_name(in_the_tree) == name


@given(st.text(min_size=1))
def test_se_5_every_name_comes_back(name: str) -> None:
    assert decode_name(encode_name(name)) == name


@pytest.mark.parametrize(
    ("path", "entity"),
    [
        ("users/u", Entity("u")),
        ("users/u/clients/c", Entity("u", "c")),
        ("clients/c", Entity("", "c")),
        ("ips/1.2.3.4", None),
        ("users/u/topics/t", None),
        ("users/", None),
    ],
)
def test_se_5_an_entity_and_its_place(path: str, entity: Entity | None) -> None:
    assert entity_of(path) == entity
    assert entity is None or entity.path == path
