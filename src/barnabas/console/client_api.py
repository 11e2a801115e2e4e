"""Handles `/api/clients` and `/api/clients/producers`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.client_events import ClientEvents
from barnabas.console.clients import SORTS, client_list
from barnabas.console.json_response import json_response
from barnabas.console.producers import SORTS as PRODUCER_SORTS
from barnabas.console.producers import ProducerBook
from barnabas.console.query import paging
from barnabas.console.watch import CLIENTS, ClusterWatch


class ClientApi:
    """Answers requests from the latest polls. It never queries the brokers itself."""

    def __init__(self, watch: ClusterWatch) -> None:
        self._watch = watch
        self._events = ClientEvents(watch.events)

    async def clients(self, request: Request) -> Response:
        """Answer `/api/clients`."""
        wanted = paging(request.query_params, SORTS)
        self._watch.viewers.view([CLIENTS])
        if self._events.last != self._watch.events.last:
            self._events = ClientEvents(self._watch.events)
        known, clients = self._watch.known, self._watch.clients.known
        return json_response(client_list(known, clients, self._events, wanted))

    async def producers(self, request: Request) -> Response:
        """Answer `/api/clients/producers`."""
        wanted = paging(request.query_params, PRODUCER_SORTS)
        self._watch.viewers.view([CLIENTS])
        known, clients = self._watch.known, self._watch.clients.known
        book = ProducerBook(known.look, clients, known.transactions, self._watch.now_ms())
        return json_response(book.page(wanted))
