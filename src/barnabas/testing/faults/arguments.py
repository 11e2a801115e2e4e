"""Checks the arguments of `faults.add`. Misspelt arguments are rejected, and so are rules that can
never match.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from types import NoneType
from typing import Any, Final, Required, TypedDict, get_args, get_type_hints

from barnabas.errors import ConfigError, KafkaError
from barnabas.protocol.api import APIS, Api
from barnabas.testing.faults.answerable import answerable, is_whole
from barnabas.testing.faults.rows import has_partitions, has_topics
from barnabas.testing.faults.rule import Action, Match
from barnabas.testing.faults.selection import Narrowed

MOST_DELAY_MS: Final = 600_000
_FOLLOWERS_APIS: Final = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch")


class RuleArguments(TypedDict, total=False):
    """The arguments of `faults.add`."""

    api: Required[str]
    topic: str | None
    partition: int | None
    client_id: str | None
    broker: int | None
    listener: str | None
    replicas: bool
    error: str | None
    delay_ms: int
    cut: bool
    drop: bool
    count: int | None
    after: int


def _plain(hint: Any) -> type:
    """Return the type of an argument without None, because None means that the argument was
    omitted.
    """
    plain: type = next(each for each in get_args(hint) or (hint,) if each is not NoneType)
    return plain


_TYPES: Final = {name: _plain(hint) for name, hint in get_type_hints(RuleArguments).items()}
ARGUMENTS: Final = tuple(_TYPES)


def parse_rule(
    given: Mapping[str, Any], broker_ids: Collection[int], listeners: Collection[str]
) -> tuple[Match, Action, tuple[int, int | None]]:
    """Build a rule from these arguments. Raises ConfigError, whose message names the argument.

    `broker_ids` and `listeners` list the existing brokers and listeners, or are empty if these are
    not known yet.
    """
    arguments = {name: value for name, value in given.items() if value is not None}
    for name, value in arguments.items():
        _check_type(name, value)
    if "api" not in arguments:
        raise ConfigError("api is missing: specify which requests to match, such as api='Produce'")
    api = _api(arguments["api"])
    action = _action(api, arguments)
    match = Match(
        api.name,
        _narrow(api, arguments, action.error),
        arguments.get("client_id"),
        arguments.get("broker"),
        arguments.get("listener"),
        arguments.get("replicas", False),
    )
    # With a rule that never matches, a test would pass for the wrong reason.
    if match.broker_id is not None and broker_ids and match.broker_id not in broker_ids:
        raise ConfigError(
            f"broker={match.broker_id} never matches: the brokers are {_list_text(broker_ids)}"
        )
    if match.listener is not None and listeners and match.listener not in listeners:
        raise ConfigError(
            f"listener={match.listener!r} never matches"
            f"{nearest(match.listener, listeners)}; the listeners are {_list_text(listeners)}"
        )
    # Other APIs have no replica id to identify a follower.
    if match.replicas and api.name not in _FOLLOWERS_APIS:
        raise ConfigError(f"replicas=True: followers do not send {api.name}; leave replicas out")
    return match, action, _limits(arguments)


def _check_type(name: str, value: Any) -> None:
    """Check an argument's name, and its value as far as that does not depend on other arguments."""
    wanted = _TYPES.get(name)
    if wanted is None:
        raise ConfigError(
            f"{name}: a fault rule has no such argument{nearest(name, ARGUMENTS)}; "
            f"the arguments are {_list_text(ARGUMENTS)}"
        )
    # partition=True would mean partition 1.
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise ConfigError(f"{name}={value!r}: it must be of type {wanted.__name__}")
    if wanted is str and not value:
        raise ConfigError(f"{name}='' matches nothing: leave it out to match everything")
    if isinstance(value, int) and value < 0:
        raise ConfigError(f"{name}={value}: it must not be negative")


def _api(name: str) -> Api:
    apis = {api.name: api for api in APIS.values()}
    api = apis.get(name)
    if api is None:
        raise ConfigError(f"api={name!r}: no API of Kafka has this name{nearest(name, apis)}")
    return api


def _action(api: Api, arguments: Mapping[str, Any]) -> Action:
    action = Action(
        arguments.get("error"),
        arguments.get("delay_ms", 0),
        arguments.get("cut", False),
        arguments.get("drop", False),
    )
    ends = [name for name in ("error", "cut", "drop") if arguments.get(name)]
    if len(ends) > 1:
        raise ConfigError(f"{' and '.join(ends)}: a rule can have only one of them")
    if not ends and not action.delay_ms:
        raise ConfigError("the rule does nothing: set error=, delay_ms=, cut=True or drop=True")
    if action.delay_ms > MOST_DELAY_MS:
        raise ConfigError(f"delay_ms={action.delay_ms}: at most {MOST_DELAY_MS} ms")
    if action.error is not None:
        _check_error(api, action.error)
    return action


def _check_error(api: Api, error: str) -> None:
    known = {each.name for each in KafkaError.__subclasses__()}
    if error not in known:
        raise ConfigError(
            f"error={error!r}: Kafka's protocol has no such error{nearest(error, known)}"
        )
    possible = answerable(api.name)
    # Clients do not handle errors that Kafka never returns from this API.
    if error not in possible:
        raise ConfigError(
            f"error={error!r}: {api.name} never returns it, and a client need not handle "
            f"it; it may return {_list_text(possible)}"
        )


def _narrow(api: Api, arguments: Mapping[str, Any], error: str | None) -> Narrowed:
    topic, partition = arguments.get("topic"), arguments.get("partition")
    if partition is not None and topic is None:
        raise ConfigError(f"partition={partition} needs a topic: set topic='...' as well")
    # A Metadata request contains only topics, but its response contains their partitions.
    if topic is not None and not has_topics(api):
        raise ConfigError(f"topic={topic!r} never matches: a {api.name} request has no topics")
    if partition is not None and not has_partitions(api) and api.name != "Metadata":
        raise ConfigError(
            f"partition={partition} never matches: a {api.name} request has no partitions"
        )
    if topic is not None and error is not None and is_whole(api.name, error):
        raise ConfigError(
            f"topic={topic!r}: {error} is an error of a whole {api.name} request; "
            "leave out topic and partition"
        )
    return Narrowed(topic, partition)


def _limits(arguments: Mapping[str, Any]) -> tuple[int, int | None]:
    count: int | None = arguments.get("count")
    if count == 0:
        raise ConfigError("count=0 never matches: leave it out for no limit")
    return arguments.get("after", 0), count


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest a similar name for a misspelt argument, if there is one."""
    folded = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    return f", did you mean {folded[near[0]]}?" if near else ""


def _list_text(names: Iterable[object]) -> str:
    return ", ".join(str(each) for each in sorted(names, key=str))
