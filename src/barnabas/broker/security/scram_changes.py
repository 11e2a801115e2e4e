"""Parses the credential changes in an AlterUserScramCredentials request, grouped by user.

Either all or none of a user's changes are applied, and an error for one user does not affect other
users. The rules and messages are the same as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.errors import (
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from barnabas.printable import has_control_characters
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    credential_from_salted,
    mechanism_of,
)

NO_NAME = "Username must not be empty"
_UNPRINTABLE = "Username must not have control characters"


class ScramChange(NamedTuple):
    """The changes to one user's credentials, by mechanism. Each is the text of the new credential,
    or None if the credential is to be deleted.
    """

    texts: Mapping[str, str | None]

    def edit(self, current: Mapping[str, str]) -> dict[str, str]:
        """Return the user's settings after the change. Raises ResourceNotFound."""
        wanted = dict(current)
        for mechanism, text in self.texts.items():
            if text is not None:
                wanted[mechanism] = text
            elif wanted.pop(mechanism, None) is None:
                raise ResourceNotFound("Attempt to delete a user credential that does not exist")
        return wanted

    def __repr__(self) -> str:
        return f"ScramChange({', '.join(self.texts)})"


def changes_of(
    request: AlterUserScramCredentialsRequest,
) -> tuple[dict[str, ScramChange], dict[str, KafkaError]]:
    """Return each user's changes, and errors for users whose changes are invalid."""
    wanted: dict[str, dict[str, str | None]] = {}
    errors: dict[str, KafkaError] = {}
    duplicates: dict[str, KafkaError] = {}

    def note(user: str, mechanism: str, text: str | None) -> None:
        of_user = wanted.setdefault(user, {})
        # KIP-554: apply none of this user's changes.
        if mechanism in of_user:
            duplicates[user] = DuplicateResource(
                "A user credential cannot be altered twice in the same request"
            )
        of_user[mechanism] = text

    for deletion in request.deletions:
        try:
            note(deletion.name, _mechanism(deletion.name, deletion.mechanism), None)
        except KafkaError as error:
            errors[deletion.name] = error.with_traceback(None)
    for upsertion in request.upsertions:
        try:
            mechanism = _mechanism(upsertion.name, upsertion.mechanism)
            if has_control_characters(upsertion.name):  # no user can have such a name
                raise UnacceptableCredential(_UNPRINTABLE)
            note(upsertion.name, mechanism, _text(mechanism, upsertion))
        except KafkaError as error:
            errors[upsertion.name] = error.with_traceback(None)
    errors = {**duplicates, **errors}
    return {user: ScramChange(wanted[user]) for user in wanted if user not in errors}, errors


def _mechanism(user: str, kind: int) -> str:
    if not user:
        raise UnacceptableCredential(NO_NAME)
    mechanism = mechanism_of(kind)
    if mechanism is None:
        raise UnsupportedSaslMechanism("Unknown SCRAM mechanism")
    return mechanism


def _text(mechanism: str, upsertion: ScramCredentialUpsertion) -> str:
    iterations = upsertion.iterations
    if iterations < MIN_ITERATIONS:
        raise UnacceptableCredential("Too few iterations")
    # KIP-554 limits the number of iterations, so that an administrator cannot make every
    # authentication slow.
    if iterations > MAX_ITERATIONS:
        raise UnacceptableCredential("Too many iterations")
    salt, salted = bytes(upsertion.salt), bytes(upsertion.salted_password)
    if not salt or not salted:
        raise UnacceptableCredential("Salt and salted password must not be empty")
    return credential_from_salted(mechanism, salted, salt, iterations).text()
