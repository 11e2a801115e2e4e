"""Implements the part of `Admin` that lists and changes users' SCRAM credentials (KIP-554).

The password never leaves this process, because only its salted hash is sent to the brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client import arguments
from barnabas.client.admin import admin_arguments
from barnabas.client.admin.admin_arguments import Names
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.admin.partition_admin import refuse_wrong_controller
from barnabas.client.errors import check
from barnabas.protocol.api import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_ITERATIONS = 4096


class UserScramCredentialUpsertion(NamedTuple):
    """Set a user's password for a mechanism."""

    user: str
    password: str
    mechanism: str = "SCRAM-SHA-256"
    iterations: int = DEFAULT_ITERATIONS  # from 4096 to 16384

    def __repr__(self) -> str:
        return f"UserScramCredentialUpsertion({self.user!r}, {self.mechanism}, {self.iterations})"


class UserScramCredentialDeletion(NamedTuple):
    """Remove a user's credential for a mechanism."""

    user: str
    mechanism: str = "SCRAM-SHA-256"


ScramAlteration = UserScramCredentialUpsertion | UserScramCredentialDeletion


class ScramAdmin(AdminCalls):
    """Lists and changes the SCRAM credentials of users."""

    async def describe_user_scram_credentials(
        self, users: Names | None = None
    ) -> dict[str, dict[str, int]]:
        """Return the mechanisms of these users (or of all users), each with its iteration count.

        Raises ResourceNotFound if a user has no credentials, or DuplicateResource if a user is
        named twice.

            await admin.describe_user_scram_credentials("alice")  # {"alice": {"SCRAM-SHA-256": ...
        """
        # On the wire, null and an empty list both mean all users; in this API, an empty list means
        # none.
        named = [] if users is None else admin_arguments.names(users, "users")
        if users is not None and not named:
            return {}
        request = DescribeUserScramCredentialsRequest(
            users=None if users is None else [UserName(name=name) for name in named]
        )

        async def attempt() -> DescribeUserScramCredentialsResponse:
            answer = await self._cluster.call_any(
                DESCRIBE_USER_SCRAM_CREDENTIALS, request, DescribeUserScramCredentialsResponse
            )
            check(answer.error_code, "describing credentials", answer.error_message)
            return answer

        answer = await self._persist(attempt)
        for result in answer.results:
            check(result.error_code, f"user {result.user!r}", result.error_message)
        return {
            result.user: {
                SCRAM_MECHANISMS[info.mechanism - 1]: info.iterations
                for info in result.credential_infos
                if 0 < info.mechanism <= len(SCRAM_MECHANISMS)
            }
            for result in answer.results
        }

    async def alter_user_scram_credentials(
        self, alterations: ScramAlteration | Iterable[ScramAlteration]
    ) -> None:
        """Set and remove credentials. For each user, either all changes are made or none is.

        Raises the first KafkaError (UnacceptableCredential, ResourceNotFound or DuplicateResource);
        the credentials of the other users in the call are still altered.

            await admin.alter_user_scram_credentials(
                UserScramCredentialUpsertion("alice", "secret", "SCRAM-SHA-512")
            )
        """
        request = _request(_several(alterations))

        async def attempt() -> AlterUserScramCredentialsResponse:
            answer = await self._cluster.call_controller(
                ALTER_USER_SCRAM_CREDENTIALS, request, AlterUserScramCredentialsResponse
            )
            refuse_wrong_controller(result.error_code for result in answer.results)
            return answer

        answer = await self._persist(attempt)
        for result in answer.results:
            check(result.error_code, f"user {result.user!r}", result.error_message)


def _several(given: ScramAlteration | Iterable[ScramAlteration]) -> list[ScramAlteration]:
    if isinstance(given, UserScramCredentialUpsertion | UserScramCredentialDeletion):
        return [given]
    several = []
    for each in arguments.several(given, "alterations"):
        if not isinstance(each, UserScramCredentialUpsertion | UserScramCredentialDeletion):
            raise TypeError(
                "alterations: must be UserScramCredentialUpsertion or UserScramCredentialDeletion, "
                f"not {type(each).__name__}"
            )
        several.append(each)
    return several


def _request(alterations: list[ScramAlteration]) -> AlterUserScramCredentialsRequest:
    # This is not imported at the top, because most uses of the admin client do not need it.
    from barnabas.security.scram import MAX_ITERATIONS, kind_of, new_salt, salted_password

    request = AlterUserScramCredentialsRequest()
    for each in alterations:
        user = arguments.text(each.user, "user")
        if each.mechanism not in SCRAM_MECHANISMS:
            raise ValueError(
                f"mechanism: {each.mechanism!r} is not one of {', '.join(SCRAM_MECHANISMS)}"
            )
        kind = kind_of(each.mechanism)
        if isinstance(each, UserScramCredentialDeletion):
            request.deletions.append(ScramCredentialDeletion(name=user, mechanism=kind))
            continue
        iterations = arguments.whole_number(each.iterations, "iterations", most=MAX_ITERATIONS)
        if not isinstance(each.password, str) or not each.password:
            raise ValueError(f"password: user {user!r} needs a password that is text and not empty")
        # The password never leaves this process; the salt makes equal passwords look different.
        salt = new_salt()
        salted = salted_password(each.mechanism, each.password, salt, max(iterations, 1))
        request.upsertions.append(
            ScramCredentialUpsertion(
                name=user,
                mechanism=kind,
                iterations=iterations,
                salt=salt,
                salted_password=salted,
            )
        )
    return request
