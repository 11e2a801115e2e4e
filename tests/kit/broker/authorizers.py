"""Another authorizer than the one that a broker without any has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from unittest.mock import patch

from barnabas.broker.context import Context
from barnabas.broker.security.authorization import ASKED, AllowAll, Audit, Needs
from barnabas.security.acl import Principal


class Authorizer(Protocol):
    def allows(
        self, principal: Principal, client_address: str, needs: Needs, resource_name: str
    ) -> bool: ...


@contextmanager
def authorized_by(authorizer: Authorizer) -> Iterator[None]:
    """Have it asked by every broker of this process."""

    def allows(
        _: AllowAll, context: Context, needs: Needs, resource_name: str, audit: Audit = ASKED
    ) -> bool:
        client = context.client
        return authorizer.allows(client.principal, client.address, needs, resource_name)

    def allows_somewhere(_: AllowAll, context: Context, needs: Needs) -> bool:
        return allows(_, context, needs, "any of its type")

    with (
        patch.object(AllowAll, "allows", allows),
        patch.object(AllowAll, "grants", None),
        patch.object(AllowAll, "allows_somewhere", allows_somewhere),
    ):
        yield
