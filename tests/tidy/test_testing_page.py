"""`docs/testing.md` says what the methods of the test kit take and return, and says it right."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import typing
from importlib import import_module

import pytest

import barnabas
from barnabas.client.producer.batch import RecordOptions
from barnabas.testing import Broker, Cluster, Group, Topic
from tests.kit.foreign import CHECKOUT

PAGES = CHECKOUT / "docs"
ROW = re.compile(
    r"^\| `(?P<owner>topic|group|broker)\.(?P<name>\w+)(?P<taken>\(.*?\))?`"
    r" \| `(?P<type>.+?)` \|$",
    re.M,
)
OWNERS = {"topic": Topic, "group": Group, "broker": Broker}
ROWS = list(ROW.finditer((PAGES / "testing.md").read_text(encoding="utf-8")))
PLAIN = {"bool", "bytes", "dict", "int", "list", "str", "None"}
PARTS = {"broker": ("topic", "topics", "group", "producer", "consumer", "admin", "snapshot")}
"""The methods of a broker that the table has; the waits are those of topic and group."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['owner']}.{row['name']}")
def test_a_method_has_the_parameters_and_the_type_that_the_page_names(row: re.Match[str]) -> None:
    function = inspect.getattr_static(OWNERS[row["owner"]], row["name"])
    if isinstance(function, property):
        assert row["taken"] is None, "it is a property"
        assert function.fget is not None
        function = function.fget
    else:
        assert row["taken"] is not None, "it is a method"
    signature = inspect.signature(function)
    assert _returned(signature) == row["type"].replace("\\|", "|")
    given = _names(row["taken"] or "()")
    known, more = _parameters(signature)
    assert [name for name in given if name not in known | more] == []
    assert known - set(given) == set(), "left out"


def test_no_method_of_a_topic_or_a_group_is_left_out() -> None:
    shown = {(row["owner"], row["name"]) for row in ROWS}
    for owner, kind in OWNERS.items():
        names = PARTS.get(owner) or [name for name in vars(kind) if not name.startswith("_")]
        assert {(owner, name) for name in names} - shown == set()


def test_each_type_is_on_a_page_of_the_api() -> None:
    headings = {
        line[3:].strip()
        for page in (PAGES / "api").glob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    }
    named = {name for row in ROWS for name in re.findall(r"\w+", row["type"])}
    assert named - PLAIN - headings == {"TopicPartition"}, "which barnabas.client has"


def test_every_name_of_the_test_kit_in_the_pages_exists() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES.rglob("*.md")]
    texts.append((CHECKOUT / "README.md").read_text(encoding="utf-8"))
    dotted = {name for text in texts for name in re.findall(r"\bbarnabas\.testing\.(\w+)", text)}
    imported = {
        name.strip()
        for text in texts
        for names in re.findall(r"from barnabas\.testing import ([\w, ]+)", text)
        for name in names.split(",")
    }
    assert dotted
    for name in dotted | imported:
        if not hasattr(barnabas.testing, name):
            import_module(f"barnabas.testing.{name}")


def test_the_packages_need_no_import_of_their_own() -> None:
    program = "import barnabas; barnabas.testing.WaitTimeout, barnabas.client.Producer"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_what_the_page_does_without_pytest_works() -> None:
    text = (PAGES / "testing.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^## Without pytest$.*?^```python\n(.*?)^```$", text, re.M | re.S)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_calls_of_brokers_and_clusters_in_the_page_exist() -> None:
    text = (PAGES / "testing.md").read_text(encoding="utf-8")
    for kind, variable in ((Broker, "broker"), (Cluster, "cluster")):
        called = set(re.findall(rf"\b{variable}\.(\w+)\(", text))
        assert called and [name for name in called if not hasattr(kind, name)] == []


def _returned(signature: inspect.Signature) -> str:
    return str(signature.return_annotation)


def _names(taken: str) -> list[str]:
    """The parameters of `(a, b=1, *, c)`, without the defaults."""
    return [
        part.partition("=")[0].strip(" *")
        for part in taken.strip("()").split(",")
        if part.strip() and part.strip() not in ("*", "...")
    ]


def _parameters(signature: inspect.Signature) -> tuple[set[str], set[str]]:
    """Those that the page must name, and those that it may."""
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    named = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
    records = {"Unpack[RecordOptions]": set(typing.get_type_hints(RecordOptions))}
    more = {name for each in parameters for name in records.get(str(each.annotation), ())}
    return named - {"timeout_s"}, {"timeout_s", "options", *more}
