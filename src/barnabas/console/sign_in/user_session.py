"""Holds the state of one signed-in browser: a watch and an application that are not shared."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.types import ASGIApp

from barnabas.client.errors import AUTHENTICATION_ERRORS
from barnabas.console.application import cluster_answers, web_application
from barnabas.console.problem import WebProblem, problem_of
from barnabas.console.watch import ClusterWatch
from barnabas.errors import ConfigError
from barnabas.security.sasl import PLAIN, SCRAM_SHA_256, SCRAM_SHA_512

_MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)
_LOGIN: Final = ("sasl_jaas_config", "sasl_plain_username", "sasl_plain_password")


class UserSession:
    """A session shares nothing with other sessions, so that users cannot see what only other users
    are allowed to see.
    """

    def __init__(
        self, servers: str, options: Mapping[str, Any], user: str, *, may_write: bool
    ) -> None:
        """`options` are the client options with this user and password."""
        self.user = user
        self._watch = ClusterWatch(servers, options)
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        answers = cluster_answers(self._watch, self._closing, options if may_write else None, user)
        self.app: ASGIApp = web_application(answers, self._watch)

    async def start(self) -> None:
        """Connect as this user. Raises a `WebProblem` if the cluster rejects the user."""
        try:
            await self._watch.start()
        except AUTHENTICATION_ERRORS as error:
            raise WebProblem(
                403, f"the cluster does not accept this user and password: {problem_of(error)}"
            ) from None
        self._task = asyncio.create_task(self._watch.run())

    @property
    def is_over(self) -> bool:
        """Whether the cluster now rejects the user, or the polling has failed."""
        return self._watch.is_refused or (self._task is not None and self._task.done())

    def end_streams(self) -> None:
        """End the responses that do not end by themselves."""
        self._closing.set()

    async def close(self) -> None:
        """End the streams, and disconnect."""
        self.end_streams()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._watch.close()


def options_of_user(options: Mapping[str, Any], user: str, password: str) -> dict[str, Any]:
    """Return a copy of these options with another user and password."""
    given = {name: value for name, value in options.items() if name not in _LOGIN}
    return {**given, "sasl_plain_username": user, "sasl_plain_password": password}


def check_sign_in(options: Mapping[str, Any]) -> None:
    """Raise ConfigError unless these options support user names and passwords."""
    protocol = str(options.get("security_protocol", "PLAINTEXT")).strip().upper()
    if not protocol.startswith("SASL_"):
        raise ConfigError(
            f"--sign-in: security.protocol is {protocol}, which has no users; set it to SASL_SSL "
            "or SASL_PLAINTEXT in the file of --command-config"
        )
    mechanism = options.get("sasl_mechanism", "GSSAPI")
    if mechanism not in _MECHANISMS:
        raise ConfigError(
            f"--sign-in: sasl.mechanism is {mechanism}, which has no passwords; set it to "
            f"one of {', '.join(_MECHANISMS)} in the file of --command-config"
        )
