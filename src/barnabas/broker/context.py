"""One request: the broker's parts, the API and version, and who asks from where (SE-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.authorization import (
    REQUIRED,
    Needs,
    Operation,
    Principal,
    ResourceType,
)

if TYPE_CHECKING:
    from barnabas.broker.node import Node
    from barnabas.cluster.image import BrokerImage
    from barnabas.protocol.api import Api


class Context:
    """One request: the node, the API and version, and who asks from where (SE-1)."""

    __slots__ = (
        "api",
        "client_address",
        "client_id",
        "listener",
        "local_host",
        "node",
        "principal",
        "verified_topics",
        "version",
    )

    def __init__(
        self, node: Node, listener: str, principal: Principal, client_address: str
    ) -> None:
        self.node = node
        self.listener = listener
        self.principal = principal
        self.client_address = client_address
        self.local_host = ""
        self.verified_topics: set[str] = set()
        """To which this connection has sent a compressed batch that was walked whole."""
        self.api: Api
        self.version = -1
        self.client_id: str | None = None

    def for_request(self, api: Api, version: int, client_id: str | None) -> Context:
        """This connection's context, for one request on it."""
        context = Context(self.node, self.listener, self.principal, self.client_address)
        context.local_host = self.local_host
        context.verified_topics = self.verified_topics
        context.api = api
        context.version = version
        context.client_id = client_id
        return context

    def allowed(self, resource_name: str) -> bool:
        """May the caller do what this API needs, on the resource of that name?"""
        needs = REQUIRED[self.api.stem]
        return needs is None or self.node.authorizer.allows(
            self.principal, self.client_address, needs, resource_name
        )

    def allowed_to(
        self, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """May the caller do what goes beyond the API's own row (create a topic by asking)?"""
        return self.node.authorizer.allows(
            self.principal, self.client_address, Needs(operation, resource_type), resource_name
        )

    def address_of(self, broker: BrokerImage) -> tuple[str, int]:
        """Host and port by which this client reaches a broker, through the listener it came by.

        Where nobody configured an address, the one through which the client came is right by
        construction, from another host and from inside a container alike.
        """
        endpoint = broker.endpoints[0]
        for candidate in broker.endpoints:
            if candidate.listener == self.listener:
                endpoint = candidate
        if broker.broker_id == self.node.broker_id and self.listener in self.node.auto_advertised:
            return self.local_host or endpoint.host, endpoint.port
        return endpoint.host, endpoint.port
