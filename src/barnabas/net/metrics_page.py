"""Renders the metric families in a registry in version 0.0.4 of the Prometheus text format.

Each family is declared in the module that counts it (`barnabas.metrics`). Rendering the page of a
broker with ten thousand partitions takes a quarter of a second. It is therefore rendered in slices,
and the event loop can run other tasks between them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator

from barnabas.metrics import Family, Read, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of a page of metrics."""

_log = logging.getLogger(__name__)

_LINES_PER_SLICE = 400  # about two milliseconds of work

_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABEL = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


async def page(registry: Iterable[Read]) -> bytes:
    """Return a page that contains all families. The values are read while the page is rendered."""
    lines: list[str] = []
    for read in registry:
        try:
            for family in read():
                for line in _lines(family):
                    lines.append(line)
                    if len(lines) % _LINES_PER_SLICE == 0:
                        await asyncio.sleep(0)
        except Exception:
            # There is a bug in this family. The other families will help to find it.
            _log.exception("collecting some metrics failed; they are missing from this page")
    return "".join(lines).encode()


def text(families: Iterable[Family]) -> str:
    """Render these families without interruption. If a family has no samples, only its header lines
    are written.
    """
    return "".join(line for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help.translate(_IN_HELP)}\n"
    yield f"# TYPE {family.name} {family.type}\n"
    for one in family.samples:
        yield f"{family.name}{one.suffix}{_labels(one)} {float(one.value)}\n"


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    pairs = (f'{name}="{value.translate(_IN_LABEL)}"' for name, value in sample.labels)
    return f"{{{','.join(pairs)}}}"
