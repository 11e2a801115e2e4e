"""The tree of words finds what a comparison with every template finds (SP-2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.logs.token_tree import WILDCARD, TokenTree

WORDS = st.sampled_from(["a", "b", "c"])
TEMPLATES = st.lists(st.lists(st.sampled_from(["a", "b", WILDCARD]), max_size=4), max_size=12)


def fits(template: list[str], message: list[str]) -> bool:
    return len(template) == len(message) and all(
        mine in (WILDCARD, theirs) for mine, theirs in zip(template, message, strict=True)
    )


def own_words(template: list[str]) -> list[bool]:
    return [word != WILDCARD for word in template]


@given(TEMPLATES, st.lists(WORDS, max_size=4))
def test_it_finds_what_fits_best(templates: list[list[str]], message: list[str]) -> None:
    tree = TokenTree()
    for number, template in enumerate(templates):
        tree.add(template, number)
    fitting = [each for each in templates if fits(each, message)]
    expected = templates.index(max(fitting, key=own_words)) if fitting else None
    assert tree.find(message) == expected


@given(TEMPLATES, st.data())
def test_what_is_removed_is_not_found(templates: list[list[str]], data: st.DataObject) -> None:
    tree = TokenTree()
    numbers = {tuple(template): number for number, template in reversed([*enumerate(templates)])}
    for number, template in enumerate(templates):
        tree.add(template, number)
    gone = data.draw(st.sets(st.sampled_from(sorted(numbers)))) if numbers else set()
    for template in gone:
        tree.remove(template, numbers[template] + 1)  # another one of these words, which is hidden
        tree.remove(template, numbers[template])
        tree.remove(template, numbers[template])
    for template, number in numbers.items():
        message = ["x" if word == WILDCARD else word for word in template]
        if template not in gone:
            assert tree.find(message) is not None
        else:
            assert tree.find(message) != number


def test_a_long_message() -> None:
    tree = TokenTree()
    tree.add([WILDCARD] * 2_000, 7)
    assert tree.find(["x"] * 2_000) == 7
    assert tree.find(["x"] * 1_999) is None
