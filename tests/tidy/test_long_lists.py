"""No handler works through a list of a request in one go: a stranger may make it long (UX-4).

Where a list is walked, the handler gets the request in pieces (`in_pieces`), says where a slice is
over (`Pace`), takes the entries from `paced`, or the API's own limit keeps the list short.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from barnabas.broker.security.authorization import BETWEEN_BROKERS
from barnabas.protocol.api import APIS, Api
from barnabas.protocol.message import Message
from barnabas.protocol.wire import Array, Primitive
from tests.kit.foreign import CHECKOUT
from tests.tidy.source import Source

HANDLERS = CHECKOUT / "src" / "barnabas" / "broker" / "handlers"

SHORT = 10_000
"""Entries that an API's own limit may allow in one go."""

EXEMPT = {
    ("alter_configs", "configs"): "of one resource, whose settings are replaced as one",
    ("create_partitions", "assignments"): "of one topic, which gets all of them or none",
    ("create_topics", "assignments"): "of one topic, which is created as one",
    ("create_topics", "configs"): "of one topic, which is created as one",
    ("delete_topics", "topic_names"): "an object for each name: a fiftieth of a request's work",
    ("fetch", "topics"): "the loop yields by `freed`",
    ("incremental_alter_configs", "configs"): "of one resource, whose settings change as one",
    ("metadata", "topics"): "those of the image",
}


def lists_of(cls: type[Message]) -> Iterator[str]:
    for made in cls.fields:
        if isinstance(made.type, Array):
            yield made.name
            if not isinstance(made.type.element, Primitive):
                yield from lists_of(made.type.element)


def walks(source: Source, names: set[str]) -> Iterator[ast.AST]:
    """The loops over a field of that name in which nothing lets others have a turn."""
    for node in source.nodes:
        if isinstance(node, ast.For):
            if mentions(node.iter, names) and not calls(node, "is_over"):
                yield node
        elif (
            isinstance(node, ast.comprehension) and not node.is_async and mentions(node.iter, names)
        ):
            yield node.iter


def mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in names for each in ast.walk(node))


def calls(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in ast.walk(node))


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.stem)
def test_a_long_list_gives_way_to_others(api: Api) -> None:
    source = Source(HANDLERS / f"{api.stem}.py")
    if "in_pieces(" in source.text or api.max_entries <= SHORT or api.stem in BETWEEN_BROKERS:
        return
    names = {one for one in lists_of(api.request) if (api.stem, one) not in EXEMPT}
    found = [source.at(node) for node in walks(source, names)]
    assert found == [], "a loop over a list of the request: see broker/runtime/slices.py"
