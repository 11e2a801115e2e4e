"""Ensures that only previewed changes are applied. A token identifies one preview and proves that
this process issued it, because it contains an HMAC of the plan's canonical bytes. The plan itself
never leaves this process, so a token cannot be used to request any other change.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.console.problem import WebProblem
from barnabas.console.writing.plan import Action, Plan

LASTING_S: Final = 300.0
"""How long a preview can be applied after it was made."""
_MOST_OPEN: Final = 100


class Ticket(NamedTuple):
    """Represents a preview that can still be applied."""

    action: Action
    plan: Plan
    ends_s: float


class Tickets:
    """Issues a token for each preview, and redeems each token once."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._secret = secrets.token_bytes(32)
        self._open: dict[str, Ticket] = {}

    def issue(self, action: Action, plan: Plan) -> str:
        """Return a token for a preview. If there are too many previews, the oldest one expires."""
        now_s = self._now_s()
        for number in [each for each, ticket in self._open.items() if ticket.ends_s <= now_s]:
            del self._open[number]
        while len(self._open) >= _MOST_OPEN:
            del self._open[next(iter(self._open))]
        number = secrets.token_hex(16)
        ticket = Ticket(action, plan, now_s + LASTING_S)
        self._open[number] = ticket
        return f"{number}.{self._proof(number, ticket)}"

    def redeem(self, token: str) -> Ticket:
        """Return the preview for a token, which cannot be used again. Raises a `WebProblem`."""
        number, _, proof = token.partition(".")
        ticket = self._open.get(number)
        if ticket is None:
            raise WebProblem(
                410,
                "there is no such preview: it was applied, is too old, or is from before the "
                "console was restarted; preview the change again",
            )
        if not hmac.compare_digest(proof.encode("utf-8"), self._proof(number, ticket).encode()):
            raise WebProblem(403, "the token does not belong to this preview")
        del self._open[number]
        if ticket.ends_s <= self._now_s():
            raise WebProblem(
                410,
                f"the preview is older than {LASTING_S / 60:.0f} minutes; preview the change again",
            )
        return ticket

    def _proof(self, number: str, ticket: Ticket) -> str:
        what = b"\0".join(
            (
                number.encode(),
                repr(ticket.ends_s).encode(),
                ticket.action.name.encode(),
                ticket.plan.canonical(),
            )
        )
        return hmac.digest(self._secret, what, "sha256").hex()
