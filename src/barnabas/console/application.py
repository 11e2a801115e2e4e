"""Assembles the web application from its routes, its error handlers and the guard in front
of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.console.api import Api
from barnabas.console.client_api import ClientApi
from barnabas.console.guard import ACTION_PATH, Guard
from barnabas.console.json_response import json_response, problem_response
from barnabas.console.pipeline_api import PipelineApi
from barnabas.console.problem import WebProblem, problem_of
from barnabas.console.shapes import Session
from barnabas.console.static_files import StaticFiles
from barnabas.console.watch import ClusterWatch
from barnabas.console.writing.writer import NOTHING, Writer
from barnabas.errors import BarnabasError

Answer = Callable[[Request], Awaitable[ASGIApp]]


def application(
    watch: ClusterWatch,
    closing: asyncio.Event,
    names: Collection[str],
    options: Mapping[str, Any] | None = None,
    folders: Sequence[Path] = (),
) -> ASGIApp:
    """Return the application. It accepts the host names in `names`. If client `options` are given,
    the application may also change the cluster. `folders` are the pipeline folders whose pages it
    serves.
    """
    app = cluster_application(watch, closing, options, folders=folders)
    return Guard(app, names, may_write=options is not None)


def cluster_application(
    watch: ClusterWatch,
    closing: asyncio.Event,
    options: Mapping[str, Any] | None = None,
    user: str = "",
    folders: Sequence[Path] = (),
) -> ASGIApp:
    """Return the application without its guard. `user` is the name of the signed-in user."""
    api, files = Api(watch, closing), StaticFiles()
    clients, pipelines = ClientApi(watch), PipelineApi(folders)
    writer = None if options is None else Writer(watch.servers, options, api.forget, user)

    async def index(request: Request) -> Response:
        return files.respond(request, "index.html")

    async def file(request: Request) -> Response:
        return files.respond(request, request.path_params["name"])

    answers: dict[str, Answer] = {
        "/api/overview": api.overview,
        "/api/events": api.events,
        "/api/events/stream": api.event_stream,
        "/api/brokers": api.brokers,
        "/api/brokers/{id}": api.broker,
        "/api/topics": api.topics,
        "/api/topics/{name}": api.topic,
        "/api/topics/{name}/messages": api.messages,
        "/api/topics/{name}/messages/stream": api.message_stream,
        "/api/topics/{name}/messages/{partition}/{offset}": api.message,
        "/api/groups": api.groups,
        "/api/groups/{id:path}": api.group,
        "/api/transactions": api.transactions,
        "/api/clients": clients.clients,
        "/api/clients/producers": clients.producers,
        "/api/pipelines": pipelines.pipelines,
        "/pipelines/{number}/{name:path}": pipelines.page,
        "/api/security": api.security,
        "/api/security/explain": api.explain,
        "/api/actions": _no_actions if writer is None else writer.state,
        "/api/session": _no_session,
        "/": index,
        "/static/{name:path}": file,
    }
    if writer is not None:
        answers[ACTION_PATH + "{name}/preview"] = writer.preview
        answers[ACTION_PATH + "{name}/apply"] = writer.apply
    routes = [Route(path, _Endpoint(answer, watch)) for path, answer in answers.items()]
    app = Starlette(
        routes=routes,
        exception_handlers=error_handlers(),
    )
    app.router.redirect_slashes = False
    return app


def error_handlers() -> dict[Any, Any]:
    """Return the handlers for errors, by error class."""
    return {
        HTTPException: _not_found,
        WebProblem: _failed,
        BarnabasError: _failed,
        OSError: _failed,
        TimeoutError: _failed,
    }


async def _no_session(_: Request) -> Response:
    return json_response(Session(required=False, user=""))


async def _no_actions(_: Request) -> Response:
    return json_response(NOTHING)


def answering(answer: Answer) -> ASGIApp:
    """Return an endpoint that does not count as watching the cluster."""
    return _Endpoint(answer, None)


class _Endpoint:
    """Calls a handler and records that somebody is watching."""

    def __init__(self, answer: Answer, watch: ClusterWatch | None) -> None:
        self._answer = answer
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._watch is not None:
            self._watch.viewers.ask()
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return problem_response(WebProblem(status, f"there is nothing at {request.url.path[:100]!r}"))


async def _failed(_: Request, error: Exception) -> Response:
    return problem_response(problem_of(error))
