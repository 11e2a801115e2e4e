"""Splits the lists in a long request to turn it into several short requests, and joins their
responses.

This is suitable for handlers that process each entry independently of all other entries. Between
the pieces, the event loop serves other connections, but the next request on the same connection
waits until the last piece is done. Nearly all requests fit into a single piece and are handled as
they are.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.broker.outcome import Hold, Outcome, Staged
from barnabas.broker.runtime.slices import SLICE_ENTRIES
from barnabas.errors import NONE
from barnabas.protocol.message import Message

if TYPE_CHECKING:
    from barnabas.broker.context import Context

M = TypeVar("M", bound=Message)


class Lists(NamedTuple):
    """The names of the long lists in a request and its response, from the outermost to the
    innermost.

    `asked` contains the names in the request, and `answered` the names in the response.
    """

    asked: tuple[str, ...]
    answered: tuple[str, ...]


def in_pieces(
    context: Context,
    request: M,
    lists: Lists,
    handle: Callable[[Context, M], Outcome],
    most_entries: int = SLICE_ENTRIES,
) -> Outcome:
    """Handle the request in pieces of up to `most_entries` entries, and join the responses.

    If the response to a piece contains an error for the whole request, that response is sent, and
    the remaining pieces are not handled.
    """
    if _size(request, lists.asked, most_entries) <= most_entries:
        return handle(context, request)
    return Hold(_handle_all(context, request, lists, handle, most_entries))


async def _handle_all(
    context: Context,
    request: M,
    lists: Lists,
    handle: Callable[[Context, M], Outcome],
    most_entries: int,
) -> Message:
    # Staged outcomes are awaited at the end, so the pieces are replicated together.
    outcomes: list[Message | Staged] = []
    for piece in pieces_of(request, lists.asked, most_entries):
        outcome: Any = handle(context, piece)
        # Await the piece immediately, because the connection's next frame is held back anyway.
        if isinstance(outcome, Hold):
            outcome = await outcome.until
        if asyncio.iscoroutine(outcome):
            outcome = await outcome
        outcomes.append(outcome)
        # An error for the whole request, such as a failed authorization, would occur in the other
        # pieces as well.
        if _is_refusal(outcome):
            break
        await asyncio.sleep(0)
    whole: Message | None = None
    for outcome in outcomes:
        answer: Any = outcome
        if isinstance(outcome, Staged):
            context.node.replicas.write_staged()
            answer = outcome.answer()
            if asyncio.iscoroutine(answer):
                answer = await answer
        await asyncio.sleep(0)
        if whole is None or _is_refusal(answer):
            whole = answer
        elif not _is_refusal(whole):
            _join(whole, answer, lists.answered)
    assert whole is not None
    return whole


def _is_refusal(outcome: object) -> bool:
    """Return whether the response contains an error for the whole request."""
    return getattr(outcome, "error_code", NONE) != NONE


def pieces_of(message: M, path: tuple[str, ...], most_entries: int) -> Iterator[M]:
    """Yield copies of the message that contain at most `most_entries` entries each.

    An entry that itself contains a long list is split across several copies.
    """
    name, rest = path[0], path[1:]
    entries: list[Any] | None = getattr(message, name)
    piece: list[Any] = []
    size = 0
    for entry in entries or ():
        own = 1 + (_size(entry, rest, most_entries) if rest else 0)
        if size + own > most_entries and piece:
            yield _with(message, name, piece)
            piece, size = [], 0
        # Either the message fits, or it cannot be split further.
        if own <= most_entries or not rest:
            piece.append(entry)
            size += own
            continue
        for part in pieces_of(entry, rest, most_entries):
            yield _with(message, name, [part])
    if piece or not entries:
        yield _with(message, name, piece if entries is not None else None)


def _with(message: M, name: str, entries: list[Any] | None) -> M:
    other = copy.copy(message)
    setattr(other, name, entries)
    return other


def _size(message: Message, path: tuple[str, ...], enough: int) -> int:
    """Return the total number of entries in these lists. If there are more than `enough`, any
    number above it may be returned.
    """
    entries = getattr(message, path[0])
    if entries is None:
        return 0
    size = len(entries)
    if len(path) > 1:
        for entry in entries:
            if size > enough:
                break
            size += _size(entry, path[1:], enough)
    return size


def _join(whole: Message, more: Message, path: tuple[str, ...]) -> None:
    """Append the entries of another response. If an entry was split, merge its results."""
    had, added = getattr(whole, path[0]), getattr(more, path[0])
    if not added:
        return
    if had and len(path) > 1 and _key(had[-1]) == _key(added[0]):
        _join(had[-1], added[0], path[1:])
        del added[0]
    had += added


def _key(entry: Message) -> object:
    """Return the first field of an entry in the response, which identifies the entry."""
    return getattr(entry, entry.fields[0].name)
