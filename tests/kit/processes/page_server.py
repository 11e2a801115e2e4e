"""`barnabas pages serve` as a process."""

from __future__ import annotations

import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.processes.command_line import COMMAND, with_settings

PATIENCE_S = 60.0


@contextmanager
def page_server(out: Path, *words: str) -> Iterator[str]:
    """Serve the tables in `out` until the end of the block, and yield the address of the page."""
    line = with_settings(["pages", "serve", "--port", "0", *words])
    with subprocess.Popen(
        [COMMAND, *line, str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            readable, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
            ready = process.stdout.readline().decode() if readable else ""
            if not ready.startswith("barnabas pages ready on http://"):
                process.kill()
                raise AssertionError(process.stderr.read().decode())
            yield ready.split()[-1]
        finally:
            process.kill()
