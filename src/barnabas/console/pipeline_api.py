"""Handles `/api/pipelines` and serves the pipeline pages below `/pipelines/`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.guard import EXPLORE_PATH
from barnabas.console.json_response import json_response
from barnabas.console.pipeline_explorer import can_explore, folder_number
from barnabas.console.pipeline_folder import PipelineFolder
from barnabas.console.pipeline_shapes import Pipelines

MOST_FOLDERS: Final = 50
_POLICY: Final = "; ".join(
    (
        "sandbox allow-downloads",
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)
"""A page contains text from log files. It is shown in a frame with an origin of its own and without
scripts.
"""
_TYPES: Final = {".html": "text/html", ".csv": "text/csv", ".json": "application/json"}


class PipelineApi:
    """Answers requests from files only."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [PipelineFolder(path, number) for number, path in enumerate(folders)]
        self._turn = asyncio.Lock()

    async def pipelines(self, _: Request) -> Response:
        """Answer `/api/pipelines`."""
        async with self._turn:  # at most one thread at a time reads a slow disk
            found = [await asyncio.to_thread(folder.rows) for folder in self._folders]
        rows = [row for folder in found for row in folder]
        if can_explore():
            for row in rows:
                if row["batch_at"] is not None:
                    row["explore"] = f"{EXPLORE_PATH[1:]}{row['number']}/"
        return json_response(Pipelines(folders=len(self._folders), pipelines=rows))

    async def page(self, request: Request) -> Response:
        """Answer `/pipelines/NUMBER/NAME`."""
        number, name = request.path_params["number"], request.path_params["name"]
        folder = self._folders[folder_number(number, len(self._folders))]
        async with self._turn:
            content = await asyncio.to_thread(folder.read, name)
        headers = {"content-security-policy": _POLICY, "cache-control": "no-store"}
        return Response(content, media_type=_TYPES[Path(name).suffix], headers=headers)
