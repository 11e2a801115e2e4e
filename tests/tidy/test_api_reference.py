"""The pages that are made from the source agree with it, and say something about everything."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module

import barnabas
import barnabas.client
import barnabas.testing
from tests.tidy import api_reference, client_options
from tests.tidy.source import sources

LINK = re.compile(r"\]\((?:([a-z_]+\.md))?#([a-z0-9_.-]+)\)")
WORD = re.compile(r"\b[A-Z]\w+\b")
EMBEDDED = "src/barnabas/testing/embedded"
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def test_the_api_reference_is_true() -> None:
    written = {
        path.name: path.read_text(encoding="utf-8") for path in api_reference.DIRECTORY.iterdir()
    }
    wanted = api_reference.pages()
    stale = [name for name in {**written, **wanted} if written.get(name) != wanted.get(name)]
    assert stale == [], f"{api_reference.COMMAND} writes them"


def test_the_page_of_client_options_is_true() -> None:
    written = client_options.DOCUMENT.read_text(encoding="utf-8")
    assert written == client_options.page(), f"{client_options.COMMAND} writes it"


def test_links_to_methods_lead_to_their_headings() -> None:
    pages = api_reference.pages()
    anchors = {name: _anchors(text) for name, text in pages.items()}
    links = [
        (target or name, anchor)
        for name, text in pages.items()
        for target, anchor in LINK.findall(text)
    ]
    assert links
    assert [link for link in links if link[1] not in anchors[link[0]]] == []


def _anchors(text: str) -> set[str]:
    """As on GitHub: in lower case, without other signs than `_` and `-`."""
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in HEADING.findall(text)}


def test_every_public_name_has_a_place() -> None:
    shown = {item.name for page in api_reference.PAGES for item in page.items}
    public = {*barnabas.client.__all__, *barnabas.__all__}
    assert public - shown == {"__version__", "TopicPartition", "client", "testing"}


def test_every_error_that_the_reference_names_can_be_imported_from_one_place() -> None:
    errors = {
        node.name
        for file in sources("src/barnabas")
        for node in file.tree.body
        if isinstance(node, ast.ClassDef) and _is_error(file.path, node.name)
    }
    text = "\n".join(api_reference.pages().values())
    named = errors & set(WORD.findall(text))
    assert len(named) > 60
    assert {name for name in named if not hasattr(barnabas.client, name)} == set()
    of_tests = {name for name in named if hasattr(barnabas.testing, name)}
    assert of_tests == {"RuleNotHit", "WaitTimeout"}
    assert named - set(barnabas.client.__all__) == of_tests, "a type checker reads this list"


def _is_error(path: str, name: str) -> bool:
    module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    if not name[:1].isupper() or module.endswith(("__init__", "__main__")):
        return False
    if path.startswith("src/barnabas/errors/") or path == "src/barnabas/client/errors.py":
        return True
    if not path.startswith(("src/barnabas/client", "src/barnabas/testing", EMBEDDED)):
        return False
    found = getattr(import_module(module), name)
    return isinstance(found, type) and issubclass(found, Exception)


def test_the_names_of_the_package_need_no_import_of_their_own() -> None:
    names = "barnabas.testing.RemoteBroker, barnabas.client.Producer, barnabas.client.BufferFull"
    command = [sys.executable, "-c", f"import barnabas; {names}"]
    assert subprocess.run(command, capture_output=True, timeout=60).stderr == b""


def test_every_method_of_the_admin_clients_has_a_docstring() -> None:
    files = {file.path.removeprefix("src/barnabas/"): file for file in sources("src/barnabas")}
    admin = next(page for page in api_reference.PAGES if page.stem == "admin")
    text = api_reference.pages()["admin.md"]
    for item in admin.items:
        found = api_reference.class_of(files[item.module], item.name)
        for function in api_reference.public_functions(found):
            heading = f"### {item.shown_as or item.name}.{function.name}\n"
            after = text.partition(heading)[2].partition("\n#")[0]
            assert after.rpartition("```")[2].strip(), f"{heading.strip()} says nothing"
