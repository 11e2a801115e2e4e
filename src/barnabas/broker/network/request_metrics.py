"""Counts requests and errors for each API, and times each phase of a request (IN-3).

    received --queue--> handler begins --local--> waits --remote--> answer --response queue--> sent
                                                                                          --send-->

    queue           behind earlier frames from the same wake-up of the loop
    local           in the handler, and until the logs are written
    remote          awaited: replicas, bytes to fetch, members of a group, a coordinator, a thread
    response queue  behind the responses to earlier requests of the connection
    send            while the client does not read; noted with its next request, not in the total

Most requests never wait, so their local time is also their total time and is recorded only once.
Waiting times are recorded only for requests that had to wait. Repeated Produce requests that arrive
in one wake-up are written together, and therefore share one time. Each connection measures only one
in sixteen of these wake-ups, because reading the clock twice and recording the time would add five
percent to the cost of a small request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add
from typing import TYPE_CHECKING, Any

from barnabas.clock import spent_ns
from barnabas.errors import error_for_code
from barnabas.metrics import QUANTILES, Durations, Family, Sample, counter, quantiles, summary
from barnabas.protocol.message import Message
from barnabas.protocol.wire import Array

if TYPE_CHECKING:
    from barnabas.metrics import Registry

_MBEAN = "kafka.network:type=RequestMetrics,name="
_AT_ONCE_NS = 50_000
"""Waits that are shorter than this are not counted."""

_FETCH, CONSUMER, FOLLOWER = "Fetch", "FetchConsumer", "FetchFollower"
"""As in Kafka, each Fetch is counted under two names, as Fetch and as FetchConsumer or
FetchFollower.
"""

_TIMES = (
    ("TotalTimeMs", "total", "Total time of a request, in ms"),
    ("RequestQueueTimeMs", "queue", "Time waiting behind earlier requests, in ms"),
    ("LocalTimeMs", "local", "Time in the handler and writing the logs, in ms"),
    (
        "RemoteTimeMs",
        "remote",
        "Time waiting for replicas, bytes, members, a coordinator or a thread, in ms",
    ),
    (
        "ResponseQueueTimeMs",
        "response_queue",
        "Time a response waits behind earlier responses, in ms",
    ),
    ("ResponseSendTimeMs", "send", "Time a response waits for the client to read, in ms"),
)

Errors = dict[int, int]
CountErrors = Callable[[Any, Errors], None]


class RequestTimes:
    """The counts and times for one version of an API, or for the requests from one kind
    of client.
    """

    __slots__ = (
        "errors",
        "local",
        "plain",
        "queue",
        "remote",
        "response_queue",
        "send",
        "total",
        "untimed",
    )

    def __init__(self) -> None:
        self.errors: Errors = defaultdict(int)
        self.untimed = 0
        """The number of answered requests for which the next measured time will be recorded."""
        self.plain = Durations()
        """The times of the requests that did not wait.

        The fields after this one are for all other requests.
        """
        self.total = Durations()
        self.local = Durations()
        self.queue = Durations()
        self.remote = Durations()
        self.response_queue = Durations()
        self.send = Durations()

    def record(self, phases: tuple[int, int, int, int], requests: int = 1) -> None:
        """Count this many requests, with these times in nanoseconds.

        The phases are queue, local, remote and response queue.
        """
        queue_ns, local_ns, remote_ns, response_ns = phases
        if queue_ns < _AT_ONCE_NS and remote_ns < _AT_ONCE_NS and response_ns < _AT_ONCE_NS:
            self.plain.add(local_ns, requests)
            return
        self.local.add(local_ns, requests)
        self.total.add(queue_ns + local_ns + remote_ns + response_ns, requests)
        if queue_ns >= _AT_ONCE_NS:
            self.queue.add(queue_ns, requests)
        if remote_ns >= _AT_ONCE_NS:
            self.remote.add(remote_ns, requests)
        if response_ns >= _AT_ONCE_NS:
            self.response_queue.add(response_ns, requests)

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return self.untimed + sum(self.plain.counts) + sum(self.total.counts)


class RequestMetrics:
    """The metrics of all requests that one broker receives on its listeners."""

    __slots__ = ("_by_version", "_counters")

    def __init__(self, metrics: Registry) -> None:
        self._by_version: dict[tuple[str, int], RequestTimes] = {}
        self._counters: dict[type[Message], CountErrors] = {}
        metrics.declare(self._families)

    def of(self, name: str, version: int) -> RequestTimes:
        """Return the counts for a version of the named API."""
        found = self._by_version.get((name, version))
        if found is None:
            found = self._by_version[name, version] = RequestTimes()
        return found

    def of_fetch(self, request: Any, version: int) -> RequestTimes:
        """Return the counts for a Fetch.

        The request is from a follower if either of the two fields says so.
        """
        is_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
        return self.of(FOLLOWER if is_follower else CONSUMER, version)

    def count_errors(self, times: RequestTimes, answer: Message) -> None:
        """Count each error code in a response, both at the top level and in its entries."""
        kind = type(answer)
        count = self._counters.get(kind)
        if count is None:
            count = self._counters[kind] = error_counter(kind) or _count_nothing
        count(answer, times.errors)

    def _families(self) -> Iterator[Family]:
        kinds = self._kinds()
        yield counter(
            f"{_MBEAN}RequestsPerSec",
            "Requests answered",
            [
                Sample(count, (("request", name), ("version", str(version))))
                for name, of_kind in kinds.items()
                for version, count in _sums((version, each.requests) for version, each in of_kind)
            ],
        )
        yield counter(
            f"{_MBEAN}ErrorsPerSec",
            "Errors in responses, including errors of single entries",
            [
                Sample(count, (("request", name), ("error", error_for_code(code).name)))
                for name, of_kind in kinds.items()
                for code, count in _sums(
                    error for _, each in of_kind for error in each.errors.items()
                )
            ],
        )
        now_ns = spent_ns()
        for mbean, phase, sentence in _TIMES:
            yield summary(
                f"{_MBEAN}{mbean}",
                sentence,
                [
                    sample
                    for name, of_kind in kinds.items()
                    for sample in _summary(
                        (("request", name),), [each for _, each in of_kind], phase, now_ns
                    )
                ],
            )

    def _kinds(self) -> dict[str, list[tuple[int, RequestTimes]]]:
        """Group the times by name. The times of a Fetch belong to two groups."""
        kinds: dict[str, list[tuple[int, RequestTimes]]] = defaultdict(list)
        for (name, version), times in self._by_version.items():
            if times.requests or times.errors:
                kinds[name].append((version, times))
                if name in (CONSUMER, FOLLOWER):
                    kinds[_FETCH].append((version, times))
        return kinds


def _sums(counts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    sums: dict[int, int] = defaultdict(int)
    for key, count in counts:
        sums[key] += count
    return sorted(sums.items())


def _summary(
    labels: tuple[tuple[str, str], ...], kinds: Sequence[RequestTimes], phase: str, now_ns: int
) -> Iterator[Sample]:
    durations = [getattr(each, phase) for each in kinds]
    if phase in ("total", "local"):
        durations += [each.plain for each in kinds]
        counts = _sum_counts(durations, now_ns)
    else:  # does not include requests without a wait
        counts = _sum_counts(durations, now_ns)
        everything = [each.total for each in kinds] + [each.plain for each in kinds]
        counts[0] += max(0, sum(_sum_counts(everything, now_ns)) - sum(counts))
    for (_, label), value in zip(QUANTILES, quantiles(counts), strict=True):
        yield Sample(value, (*labels, ("quantile", label)))
    yield Sample(sum(each.sum_ns for each in durations) / 1e6, labels, "_sum")
    yield Sample(sum(each.requests for each in kinds), labels, "_count")


def _sum_counts(durations: Iterable[Durations], now_ns: int) -> list[int]:
    counts: list[int] = []
    for each in durations:
        lately = each.lately(now_ns)
        counts = list(map(add, counts, lately)) if counts else list(lately)
    return counts


# --- errors --------------------------------------------------------------------------------------


def error_counter(kind: type[Message]) -> CountErrors | None:
    """Return a function that counts the error codes in messages of this class, or None if the class
    has no error codes.
    """
    has_own = any(each.name == "error_code" for each in kind.fields)
    inner: list[tuple[str, CountErrors]] = []
    for each in kind.fields:
        element = each.type.element if isinstance(each.type, Array) else each.type
        if isinstance(element, type) and (count := error_counter(element)) is not None:
            counts_all = count if not isinstance(each.type, Array) else _of_all(element, count)
            inner.append((each.name, counts_all))
    if not inner:
        return _count_own if has_own else None

    def count_whole(message: Any, errors: Errors) -> None:
        if has_own:
            _count_own(message, errors)
        for name, count in inner:
            value = getattr(message, name)
            if value:
                count(value, errors)

    return count_whole


def _of_all(element: type[Message], count: CountErrors) -> CountErrors:
    """Return a function that counts the error codes in an array.

    Elements that consist only of a code are read directly.
    """

    def count_codes(messages: Any, errors: Errors) -> None:
        for code in [each.error_code for each in messages if each.error_code]:
            errors[code] += 1

    def count_each(messages: Any, errors: Errors) -> None:
        for each in messages:
            count(each, errors)

    return count_codes if count is _count_own else count_each


def _count_own(message: Any, errors: Errors) -> None:
    if message.error_code:
        errors[message.error_code] += 1


def _count_nothing(message: Any, errors: Errors) -> None:
    """Count nothing. This is used for responses that cannot report an error."""
