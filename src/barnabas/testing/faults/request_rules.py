"""Applies the rules of one broker or cluster to requests, on the loop that serves them.

Rules are tried in the order in which they were added, and the first match is applied: it delays the
request, rejects all or part of it, closes the connection before the handler is called, or drops the
handler's response. A request that no rule matches goes to the handler unchanged. A rejected part
does not reach the handler (except in Metadata requests). The rest of the request does, and the two
responses are merged.

Requests in progress are unaffected when a rule is added or removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from itertools import count
from threading import Lock
from types import MappingProxyType
from typing import Any

from barnabas.broker.context import Context
from barnabas.broker.network.request_faults import ConnectionCut
from barnabas.broker.outcome import Hold, Later, LaterOutcome, Outcome, Staged
from barnabas.errors import ConfigError, FetchSessionIdNotFound, KafkaError
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import encode_response
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.testing.faults.answerable import is_whole
from barnabas.testing.faults.arguments import parse_rule
from barnabas.testing.faults.refusal import merge, put_errors, refusal
from barnabas.testing.faults.rule import Rule
from barnabas.testing.faults.selection import Narrowed, select
from barnabas.types import FileSlice

MOST_RULES = 1000

Handler = Callable[[Context, Any], Outcome]
Change = Callable[[Message | None], None]
"""Changes a response in place. The argument is None if the request has no response. If this raises
an error, the connection is closed.
"""

_NO_SESSION = 0
_FULL_WITHOUT_SESSION = -1
_CODES = MappingProxyType({each.name: each.code for each in KafkaError.__subclasses__()})


class RequestRules:
    """Holds the rules in the order in which they were added. The first rule that matches a request
    is applied.

    `changed` is called after each change. If it raises an error after a rule was added, the rule is
    removed again. `new_rule` creates a rule from the arguments of `Rule`.
    """

    def __init__(self, changed: Callable[[], None], new_rule: Callable[..., Rule] = Rule) -> None:
        self._changed = changed
        self._new_rule = new_rule
        self._lock = Lock()
        self._ids = count(1)
        self._rules: tuple[Rule, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._rules

    def add(
        self,
        given: dict[str, Any],
        broker_ids: Collection[int] = (),
        listeners: Collection[str] = (),
    ) -> Rule:
        """Add a rule. Raises ConfigError if it is misspelt or can never match."""
        match, action, limits = parse_rule(given, broker_ids, listeners)
        with self._lock:
            if len(self._rules) >= MOST_RULES:
                raise ConfigError(
                    f"there are {MOST_RULES} rules already; remove some, or call clear()"
                )
            rule = self._new_rule(next(self._ids), match, action, limits, self.remove)
            # A new tuple is assigned, so the broker's loop needs no lock: it reads either the old
            # tuple or the new one.
            self._rules = (*self._rules, rule)
        try:
            self._changed()
        # The process is paused or rejected the rule. A rule that applies nowhere must not be
        # listed.
        except BaseException:
            self._drop(rule)
            raise
        return rule

    def remove(self, rule: Rule) -> None:
        """Stop applying the rule. Do nothing if the rule has already been removed."""
        self._drop(rule)
        self._changed()

    def _drop(self, rule: Rule) -> None:
        with self._lock:
            self._rules = tuple(each for each in self._rules if each is not rule)

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._rules = ()
        self._changed()

    # ---- methods that run on the broker's loop (broker.network.request_faults) ----

    def handle(self, context: Context, request: Message, handler: Handler) -> Outcome:
        """Handle stage one of a request, applying the first rule that matches."""
        api = context.api.name
        rules = [rule for rule in self._rules if _is_about(rule, context, request)]
        # In a fetch session (KIP-227), a request lists only the partitions that have changed since
        # the previous request.
        if api == "Fetch" and any(rule.match.narrowed.topic for rule in rules):
            refused = _without_session(context, request)
            if refused is not None:
                return refused
        for rule in rules:
            chosen = _chosen(rule, context, request)
            # `take` counts, so call it only for a request that the rule matches.
            if chosen and rule.take():
                return _apply(rule, context, request, handler)
        return handler(context, request)


def _is_about(rule: Rule, context: Context, request: Message) -> bool:
    match = rule.match
    return (
        match.api == context.api.name
        and not rule.is_spent
        and match.client_id in (None, context.client_id)
        and match.broker_id in (None, context.node.broker_id)
        and match.listener in (None, context.client.listener)
        and (match.replicas or not _is_of_follower(request))
    )


def _is_of_follower(request: Any) -> bool:
    """Return whether the request was sent by a follower. The replica id is -1 for clients and -2
    for debugging tools."""
    state = getattr(request, "replica_state", None)
    ids = (getattr(request, "replica_id", -1), getattr(state, "replica_id", -1))
    return max(ids) >= 0


def _chosen(rule: Rule, context: Context, request: Message) -> bool:
    """Return whether the request concerns the topic and partition of the rule."""
    if rule.match.narrowed.topic is None:
        return True
    if context.api.name == "Metadata":
        topics = getattr(request, "topics", None)
        if topics is None:
            return True  # it requests all topics
        # The request contains only topics; look the partition up in the response.
        topic_only = Narrowed(rule.match.narrowed.topic)
        return select(request, topic_only, context.node.image.topic_names).chosen is not None
    return select(request, rule.match.narrowed, context.node.image.topic_names).chosen is not None


def _without_session(context: Context, request: Any) -> Outcome | None:
    """Make a Fetch request list all its partitions, because in a fetch session, it lists only some
    of them.

    A request in a session is answered as if the session had been evicted, and no new one is
    started.
    """
    # Fetch sessions were added in version 7.
    if context.version < 7:
        return None
    if request.session_id != _NO_SESSION and request.session_epoch > 0:
        code = FetchSessionIdNotFound.code
        return refusal(context.api, context.version, request, code, whole=True)
    request.session_epoch = _FULL_WITHOUT_SESSION
    return None


# ---- applying a rule to a request ----


def _apply(rule: Rule, context: Context, request: Message, handler: Handler) -> Outcome:
    act = partial(_act, rule, context, request, handler)
    delay_ms = rule.action.delay_ms
    return Hold(_delay(delay_ms, act)) if delay_ms else act()


async def _delay(delay_ms: int, act: Callable[[], Outcome]) -> Message | Staged | Later | None:
    await asyncio.sleep(delay_ms / 1000)
    outcome = act()
    return await outcome.until if isinstance(outcome, Hold) else outcome


def _act(rule: Rule, context: Context, request: Message, handler: Handler) -> Outcome:
    action = rule.action
    if action.cut:
        raise ConnectionCut(f"{rule} cuts the connection")
    if action.drop:
        return _with_change(handler(context, request), partial(_drop, rule, context))
    if action.error is None:
        return handler(context, request)
    return _refuse(rule, context, request, handler, _CODES[action.error])


def _refuse(rule: Rule, context: Context, request: Any, handler: Handler, code: int) -> Outcome:
    api, version, narrowed = context.api, context.version, rule.match.narrowed
    if getattr(request, "acks", None) == 0:
        # Close the connection, as a broker does, because there is no response that could contain
        # the error.
        raise ConnectionCut(f"{rule} refuses a Produce request with acks=0, which has no answer")
    if api.name == "Metadata":
        return _with_change(handler(context, request), partial(put_errors, narrowed, code))
    chosen, rest = select(request, narrowed, context.node.image.topic_names)
    assert chosen is not None, "the request was found to be about the topic"
    whole = is_whole(api.name, rule.action.error or "")
    refused = refusal(api, version, chosen, code, whole=whole)
    if rest is None:
        return refused
    if isinstance(rest, FetchRequest):
        rest.max_wait_ms = 0  # return the error immediately
    return _with_change(handler(context, rest), partial(_merge, refused))


def _merge(refused: Message, answer: Message | None) -> None:
    if answer is not None:
        merge(answer, refused)


def _drop(rule: Rule, context: Context, answer: Message | None) -> None:
    if answer is not None:
        for part in encode_response(context.api, context.version, 0, answer):
            if isinstance(part, FileSlice):
                part.release()
    raise ConnectionCut(f"{rule} drops the answer")


# ---- changing the response of an outcome ----


def _with_change(outcome: Outcome, change: Change) -> Outcome:
    """Return the outcome with `change` applied to its response before it is sent."""
    # The request has not been handled yet, so the change applies to its later outcome.
    if isinstance(outcome, Hold):
        return Hold(_outcome_later(outcome.until, change))
    return _with_change_now(outcome, change)


def _with_change_now(outcome: Message | Staged | Later, change: Change) -> Message | Staged | Later:
    if isinstance(outcome, Message):
        change(outcome)
        return outcome
    # The response is built when the batch to which it belongs is written.
    if isinstance(outcome, Staged):
        return _ChangedStaged(outcome, change)
    return _answer_later(outcome, change)


async def _answer_later(later: Later, change: Change) -> Message | None:
    answer = await later
    change(answer)
    return answer


async def _outcome_later(later: LaterOutcome, change: Change) -> Message | Staged | Later | None:
    outcome = await later
    if outcome is None:
        change(None)
        return None
    return _with_change_now(outcome, change)


class _ChangedStaged(Staged):
    __slots__ = ("_change", "_staged")

    def __init__(self, staged: Staged, change: Change) -> None:
        self._staged = staged
        self._change = change

    def answer(self) -> Message | Later | None:
        answer = self._staged.answer()
        if answer is None or isinstance(answer, Message):
            self._change(answer)
            return answer
        return _answer_later(answer, self._change)
