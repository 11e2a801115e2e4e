"""Renders a self-contained HTML page, which needs neither a network nor scripts.

Each pipeline has a template that extends `base.html` (the style sheet and the frame) and uses
`parts.html`, both in the folder `templates` next to this file. The style sheet includes the web
console's `static/base.css`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from barnabas.counted import counted
from barnabas_pipeline.page import attention, words


class PageOptions(NamedTuple):
    """A page's options."""

    made_at: datetime
    """The time at which the page was created, with the time zone."""
    refresh_s: int | None = None
    """The interval in seconds at which an open page reloads itself, or None if it never does."""
    show_addresses: bool = False
    """Whether to show full network addresses instead of only their networks."""


def render(package: str, template: str, options: PageOptions, values: Mapping[str, object]) -> str:
    """Return the page as HTML.

    `package`: the package whose folder `templates` contains `template`.
    """
    loaders = [
        PackageLoader(package),
        PackageLoader("barnabas_pipeline.page"),
        PackageLoader("barnabas.console", "static"),  # base.css
    ]
    environment = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        anchor=attention.anchor,
        number=words.number,
        counted=counted,
        percent=words.percent,
        duration=words.duration,
        short_duration=words.short_duration,
        size=words.size,
        share=words.share,
        interval=words.interval,
        moment=words.moment,
        short_moment=words.short_moment,
        days=words.days,
    )
    return environment.get_template(template).render(options=options, **values)


def write(path: Path, text: str) -> None:
    """Write a file atomically."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)
