"""Another authorizer than the one that a broker without any has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from unittest.mock import patch

from barnabas.broker.security.authorization import AllowAll, Needs
from barnabas.security.acl import Principal


class Authorizer(Protocol):
    def allows(
        self, principal: Principal, client_address: str, needs: Needs, resource_name: str
    ) -> bool: ...


@contextmanager
def authorized_by(authorizer: Authorizer) -> Iterator[None]:
    """Have it asked by every broker of this process."""

    def allows(_: AllowAll, *question: object) -> bool:
        return authorizer.allows(*question)  # type: ignore[arg-type]

    with patch.object(AllowAll, "allows", allows):
        yield
