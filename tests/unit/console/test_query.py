"""Parameters of addresses, and what is wrong with them."""

from __future__ import annotations

import pytest

from barnabas.console.problem import WebProblem
from barnabas.console.query import choice, flag, number, paging, text


def test_a_list_without_parameters_has_its_defaults() -> None:
    assert paging({}, ("name", "size")) == ("", "name", False, 0)
    given = {"search": "Ab", "sort": "size", "descending": "1", "page": "2"}
    assert paging(given, ("name", "size")) == ("ab", "size", True, 2)


@pytest.mark.parametrize("value", ["-1", "1.0", "1e3", " 1", "²", "1" * 30, "11", "x" * 900])
def test_a_bad_number_names_its_parameter(value: str) -> None:
    with pytest.raises(WebProblem, match=r"^limit=") as raised:
        number({"limit": value}, "limit", 5, least=1, most=10)
    assert (raised.value.status, len(str(raised.value)) < 120) == (400, True)


def test_other_bad_values_name_their_parameters_too() -> None:
    with pytest.raises(WebProblem, match=r"^sort=x: give one of a, b"):
        choice({"sort": "x"}, "sort", ("a", "b"))
    with pytest.raises(WebProblem, match=r"^all=yes: give 1 or 0"):
        flag({"all": "yes"}, "all")
    with pytest.raises(WebProblem, match=r"^search: at most 256 characters, not 257"):
        text({"search": "x" * 257}, "search")
