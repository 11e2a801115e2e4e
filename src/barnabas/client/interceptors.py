"""Calls a client's interceptors: user code that runs on each record (PR-10).

    producer: on_send(record) -> record    on_acknowledgement(metadata, error)
    consumer: on_consume(records) -> records    on_commit(offsets)
    both: close()

An interceptor has at least one of the methods for its kind of client. Interceptors are called in
the order in which `interceptor.classes` lists them, and each receives the result of the previous
one. If an interceptor raises an error, the error is logged and the record stays as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, TypeVar

from barnabas.client.escalation import raise_on_loop
from barnabas.errors import ConfigError

_log = logging.getLogger(__name__)

OPTION: Final = "interceptor.classes"
PRODUCER_METHODS: Final = ("on_send", "on_acknowledgement")
CONSUMER_METHODS: Final = ("on_consume", "on_commit")

T = TypeVar("T")
Method = Callable[..., Any]


class Interceptors:
    """Calls the interceptors of a client in order. It is falsy if there are none."""

    def __init__(self, interceptors: Sequence[object]) -> None:
        self._all = interceptors

    def __bool__(self) -> bool:
        return bool(self._all)

    def on_send(self, record: T) -> T:
        """Return the record to send. This is called before the serializers and the partitioner."""
        return self._pass_through(self._methods("on_send"), record)

    def on_acknowledgement(self, metadata: object, error: BaseException | None) -> None:
        """Report a record's outcome: its RecordMetadata (offset -1 if it failed) and its error.

        This is called on the client's event loop, so it must not take long.
        """
        self._notify(self._methods("on_acknowledgement"), metadata, error)

    def on_consume(self, records: T) -> T:
        """Return the records that the poll returns."""
        return self._pass_through(self._methods("on_consume"), records)

    def on_commit(self, offsets: object) -> None:
        """Report the committed offsets."""
        self._notify(self._methods("on_commit"), offsets)

    def close(self) -> None:
        """Close each interceptor that has a `close` method. Further calls do nothing."""
        # Closed interceptors receive no further record failures.
        methods = self._methods("close")
        self._all = ()
        self._notify(methods)

    def _methods(self, name: str) -> list[Method]:
        found = (getattr(each, name, None) for each in self._all)
        return [method for method in found if method is not None]

    def _pass_through(self, methods: Sequence[Method], given: T) -> T:
        for method in methods:
            try:
                changed = method(given)
                # An interceptor without a `return` must not turn the record into None.
                if not isinstance(changed, type(given)):
                    kinds = type(given).__name__, type(changed).__name__
                    raise TypeError("it must return {}, not {}".format(*kinds))
                given = changed
            except Exception:  # user code may raise anything
                _log.exception("interceptor %s failed and is skipped", _name(method))
        return given

    def _notify(self, methods: Sequence[Method], *news: object) -> None:
        for method in methods:
            try:
                method(*news)
            except Exception:  # user code may raise anything
                _log.exception("interceptor %s failed and is skipped", _name(method))
            # e.g. SystemExit; the rest of the batch must still be reported
            except BaseException as error:
                raise_on_loop(error)


def interceptor_classes(given: object, methods: Sequence[str]) -> Interceptors:
    """Create the interceptors for the option `interceptor.classes`.

    Args:
        given: an object, a class, or text such as "package.module:Class" or "package.module.Class";
            several of them as a list, or as text separated by commas. Classes are called without
            arguments.
        methods: `PRODUCER_METHODS` or `CONSUMER_METHODS`; each interceptor must have at least one.

    Raises ConfigError if an interceptor cannot be found or created, or has none of the methods.
    """
    if isinstance(given, str):
        given = [text for text in map(str.strip, given.split(",")) if text]
    several = given if isinstance(given, list | tuple) else [given]
    return Interceptors([_made(each, methods) for each in several if each is not None])


def _made(given: object, methods: Sequence[str]) -> object:
    found = _found(given) if isinstance(given, str) else given
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:  # user code may raise anything
            raise ConfigError(f"{OPTION}: {given!r} cannot be created: {error}") from error
    if not any(callable(getattr(found, method, None)) for method in methods):
        raise ConfigError(f"{OPTION}: {given!r} has none of the methods {', '.join(methods)}")
    return found


def _found(path: str) -> object:
    module, _, name = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:  # TypeError for "..X"
        raise ConfigError(
            f"{OPTION}: {path!r} is not a class that can be imported, such as module:Class: {error}"
        ) from error


def _name(method: Method) -> str:
    return getattr(method, "__qualname__", None) or type(method).__name__
