"""Previews and applies the actions of a `barnabas console --write`."""

from __future__ import annotations

from typing import Any

from barnabas.console import shapes
from tests.kit.processes.web_console import Answer, WebConsole
from tests.kit.shapes import misfits


def preview(console: WebConsole, name: str, **fields: Any) -> shapes.ActionPreview:
    answer = console.post(f"/api/actions/{name}/preview", fields)
    assert answer.status == 200, answer
    assert list(misfits(answer.json, shapes.ActionPreview)) == []
    found: shapes.ActionPreview = answer.json
    return found


def apply(console: WebConsole, name: str, token: str) -> Answer:
    return console.post(f"/api/actions/{name}/apply", {"token": token})


def make(console: WebConsole, name: str, **fields: Any) -> list[tuple[Any, ...]]:
    """Preview and apply; return the changes."""
    found = preview(console, name, **fields)
    answer = apply(console, name, found["token"])
    assert answer.status == 200, answer
    assert list(misfits(answer.json, shapes.ActionResult)) == []
    return [(each["what"], each["before"], each["after"]) for each in found["changes"]]


def error_of(answer: Answer, status: int) -> str:
    assert (answer.status, list(misfits(answer.json, shapes.Problem))) == (status, [])
    text: str = answer.json["error"]
    return text
