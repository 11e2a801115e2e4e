"""Provides a request's context, which consists of the broker's parts, the API and its version, and
the client (SE-1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.authorization import ASKED, REQUIRED, SHOWN, TRIED, Audit, Needs
from barnabas.printable import printable
from barnabas.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.network.client_connection import ClientConnection
    from barnabas.broker.node import Node
    from barnabas.cluster.image import BrokerImage
    from barnabas.protocol.api import Api


_LONGEST_NAME = 249  # the length of the longest topic name; client ids can be 32 KiB long


class Context:
    """A request's context, with the broker's parts, the client's connection, the API and its
    version.
    """

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
        """Return whether the client is authorized to perform this API's operation on the named
        resource.

        `references` is the number of times that the request names the resource. The authorizer logs
        it.
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
        """Return whether the client is authorized to perform an operation other than this API's
        usual one.

        For example, a Metadata request can cause a topic to be created (TP-6).
        """
        audit = ASKED if references == 1 else Audit(references=references)
        needs = Needs(operation, resource_type)
        return self.node.authorizer.allows(self, needs, resource_name, audit)

    def may(self, operation: Operation, resource_type: ResourceType, resource_name: str) -> bool:
        """Return whether the client is authorized. A denial is not logged.

        Use this method to filter a list, or when either of two permissions is sufficient.
        """
        needs = Needs(operation, resource_type)
        return self.node.authorizer.allows(self, needs, resource_name, TRIED)

    def could(self, operation: Operation, resource_type: ResourceType, resource_name: str) -> bool:
        """Return whether the client is authorized. Neither outcome is logged.

        Use this method to tell the client which operations it may perform, and for permissions that
        will be checked again later.
        """
        needs = Needs(operation, resource_type)
        return self.node.authorizer.allows(self, needs, resource_name, SHOWN)

    def allowed_somewhere(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether the client is authorized on at least one resource of this
        type (KIP-679).
        """
        return self.node.authorizer.allows_somewhere(self, Needs(operation, resource_type))

    @property
    def origin(self) -> str:
        """Describe the request and its sender, for use as the cause of an event."""
        client = self.client
        principal = printable(str(client.principal)[:_LONGEST_NAME])
        client_id = (self.client_id or "")[:_LONGEST_NAME]  # escaped when it is printed
        return (
            f"{self.api.name} by principal {principal}, client id {client_id!r}, "
            f"host {client.address}"
        )

    def address_of(self, broker: BrokerImage) -> tuple[str, int]:
        """Return the host and port at which this client can reach a broker through the client's own
        listener.

        If no address is configured, return the address that the client connected to. It can be
        reached both from another host and from inside a container.
        """
        client = self.client
        endpoint = broker.endpoints[0]
        for candidate in broker.endpoints:
            # KIP-103: a client reaches all brokers through listeners with the same name.
            if candidate.listener == client.listener:
                endpoint = candidate
        if broker.broker_id == self.node.broker_id and client.listener in self.node.auto_advertised:
            return client.local_host or endpoint.host, endpoint.port
        return endpoint.host, endpoint.port
