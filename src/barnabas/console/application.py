"""Assembles the web application from its routes, its error handlers and the guard in front
of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.console.api import Api
from barnabas.console.client_api import ClientApi
from barnabas.console.guard import ACTION_PATH, EXPLORE_PATH, Guard
from barnabas.console.json_response import json_response, problem_response
from barnabas.console.pipeline_api import PipelineApi
from barnabas.console.pipeline_explorer import PipelineExplorer
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
    answers = cluster_answers(watch, closing, options, folders=folders)
    app = web_application({**answers, **file_answers()}, watch)
    return Guard(app, names, may_write=options is not None)


def cluster_answers(
    watch: ClusterWatch,
    closing: asyncio.Event,
    options: Mapping[str, Any] | None = None,
    user: str = "",
    folders: Sequence[Path] = (),
) -> dict[str, Answer]:
    """Return the handlers for everything except the page's own files, by path.

    `user` is the name of the signed-in user.
    """
    api = Api(watch, closing)
    clients, pipelines = ClientApi(watch), PipelineApi(folders)
    explorer = PipelineExplorer(folders, watch, closing)
    writer = None if options is None else Writer(watch.servers, options, api.forget, user)

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
        EXPLORE_PATH + "{number}": explorer.index,
        EXPLORE_PATH + "{number}/{path:path}": explorer.page,
        "/api/security": api.security,
        "/api/security/explain": api.explain,
        "/api/actions": _no_actions if writer is None else writer.state,
        "/api/session": _no_session,
    }
    if writer is not None:
        answers[ACTION_PATH + "{name}/preview"] = writer.preview
        answers[ACTION_PATH + "{name}/apply"] = writer.apply
    return answers


def file_answers() -> dict[str, Answer]:
    """Return the handlers for the page and its files, by path."""
    files = StaticFiles()

    async def index(request: Request) -> Response:
        return files.respond(request, "index.html")

    async def file(request: Request) -> Response:
        return files.respond(request, request.path_params["name"])

    return {"/": index, "/static/{name:path}": file}


def web_application(answers: Mapping[str, Answer], watch: ClusterWatch | None) -> ASGIApp:
    """Return an application without a guard. Each of its requests keeps `watch` polling."""
    app = Starlette(
        routes=[Route(path, _Endpoint(answer, watch)) for path, answer in answers.items()],
        exception_handlers=_ERROR_HANDLERS,
    )
    app.router.redirect_slashes = False
    return app


async def _no_session(_: Request) -> Response:
    return json_response(Session(required=False, user="", ended=""))


async def _no_actions(_: Request) -> Response:
    return json_response(NOTHING)


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


_ERROR_HANDLERS: Final[Mapping[Any, Any]] = {
    HTTPException: _not_found,
    WebProblem: _failed,
    BarnabasError: _failed,
    OSError: _failed,
    TimeoutError: _failed,
}
