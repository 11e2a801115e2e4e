"""One request: the broker's parts, the API and version, and the client that asks (SE-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.authorization import ASKED, REQUIRED, SHOWN, TRIED, Audit, Needs
from barnabas.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.network.client_connection import ClientConnection
    from barnabas.broker.node import Node
    from barnabas.cluster.image import BrokerImage
    from barnabas.protocol.api import Api


class Context:
    """One request: the broker's parts, the client's connection, the API and its version."""

    __slots__ = ("api", "client", "client_id", "node", "version")

    def __init__(
        self, node: Node, client: ClientConnection, api: Api, version: int, client_id: str | None
    ) -> None:
        self.node = node
        self.client = client
        self.api = api
        self.version = version
        self.client_id = client_id

    def is_allowed(self, resource_name: str, references: int = 1) -> bool:
        """Return whether the client may do what this API needs on the resource of that name.

        `references` is how often the request names it, for the log.
        """
        needs = REQUIRED[self.api.stem]
        audit = ASKED if references == 1 else Audit(references=references)
        return needs is None or self.node.authorizer.allows(self, needs, resource_name, audit)

    def allowed_to(
        self,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
        references: int = 1,
    ) -> bool:
        """Return whether the client may do something that the API's own row does not cover.

        For example, create a topic by asking for its metadata (TP-6).
        """
        audit = ASKED if references == 1 else Audit(references=references)
        needs = Needs(operation, resource_type)
        return self.node.authorizer.allows(self, needs, resource_name, audit)

    def may(self, operation: Operation, resource_type: ResourceType, resource_name: str) -> bool:
        """Return whether the client may do something it did not ask for; denials are not logged.

        It decides what a list may show the client, or is one of two permissions of which either is
        enough.
        """
        needs = Needs(operation, resource_type)
        return self.node.authorizer.allows(self, needs, resource_name, TRIED)

    def could(self, operation: Operation, resource_type: ResourceType, resource_name: str) -> bool:
        """Return whether the client may do this, when nothing is granted by the answer yet.

        It is shown to the client, or checked again before it is used, so nothing is logged.
        """
        needs = Needs(operation, resource_type)
        return self.node.authorizer.allows(self, needs, resource_name, SHOWN)

    def allowed_somewhere(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether the client may do this on at least one resource of the type (KIP-679)."""
        return self.node.authorizer.allows_somewhere(self, Needs(operation, resource_type))

    def address_of(self, broker: BrokerImage) -> tuple[str, int]:
        """Return the host and port at which this client reaches a broker, through its own listener.

        Without a configured address it is the address by which the client connected: that is right
        both from another host and from inside a container.
        """
        client = self.client
        endpoint = broker.endpoints[0]
        for candidate in broker.endpoints:
            # KIP-103: a client is redirected through the listener by which it connected.
            if candidate.listener == client.listener:
                endpoint = candidate
        if broker.broker_id == self.node.broker_id and client.listener in self.node.auto_advertised:
            return client.local_host or endpoint.host, endpoint.port
        return endpoint.host, endpoint.port
