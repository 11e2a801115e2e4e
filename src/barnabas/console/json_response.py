"""Builds JSON responses."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from barnabas.console.problem import WebProblem
from barnabas.console.shapes import Problem


def json_bytes(value: Any) -> bytes:
    """Return the JSON of a shape. The JSON is ASCII, so it is valid even if a name contains half a
    surrogate pair.
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def json_response(value: Any, status: int = 200) -> Response:
    """Return the response with a shape."""
    return Response(json_bytes(value), status, media_type="application/json")


def problem_response(problem: WebProblem) -> Response:
    """Return the response with a problem."""
    return json_response(Problem(error=str(problem)), problem.status)
