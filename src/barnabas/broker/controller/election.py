"""Whether this broker is controller, and how it comes to be: its session, its candidacy, its end.

    register -> try to be elected -> in office: serve until it ends -> watch who is controller
        ^               ^______________________________________________________|
        |_______ the session is over

Of all brokers that share a metadata store one is controller: who has made `/controller`. The others
watch that node and try again when it is gone. A tenure (`Office`) that ends, for whatever reason,
is over as a whole; the next one, of this broker or another, begins with reading everything. After a
session that has expired nothing of it counts: the broker registers anew, with another epoch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from barnabas.broker.controller.broker_channels import Deliveries
from barnabas.broker.controller.event_loop import Office, OfficeSettings, Seat
from barnabas.broker.controller.registration import (
    Elected,
    become_controller,
    leave_office,
    office_of,
    register,
)
from barnabas.clock import Clock
from barnabas.cluster import layout
from barnabas.cluster.image import BrokerImage
from barnabas.cluster.store import BadVersion, MetadataError, SessionExpired, SessionState, Set
from barnabas.errors import BarnabasError, KafkaError, NotController

_log = logging.getLogger(__name__)

# An earlier life's session ends a tick after its time at the latest, and two ticks are the shortest
# session that a ZooKeeper grants: 4 s, as it comes. Its machine may be busy, too.
_SHORTEST_SESSION_MS = 4_000
_ENDS_LATE_MS = 1_000

_UNKNOWN = -1
_BACKOFF_S = 0.05
_DOUBLINGS = 7
_CALM_AGAIN_MS = 20_000
"""So long after a failure the next one is taken for the first."""

Registered = Callable[[BrokerImage], None]


class Candidacy:
    """This broker's. `start` and `stop` are called once each."""

    __slots__ = (
        "_broker",
        "_clock",
        "_cluster_id",
        "_deliveries",
        "_due",
        "_failed_at_ms",
        "_failures",
        "_new_deliveries",
        "_office",
        "_registered",
        "_seat",
        "_session_id",
        "_settings",
        "_store",
        "_task",
        "_why_not",
        "controller_id",
    )

    def __init__(
        self,
        seat: Seat,
        clock: Clock,
        deliveries: Callable[[], Deliveries],
        registered: Registered,
    ) -> None:
        """`deliveries` makes a tenure's ways to the brokers; `registered` is told of each
        registration of this broker."""
        self._store = seat.store
        self._seat = seat
        self._clock = clock
        self._new_deliveries = deliveries
        self._registered = registered
        self._settings = OfficeSettings()
        self._broker: BrokerImage | None = None
        self._cluster_id = ""
        self._session_id = 0  # in which this broker is registered
        self._office: Office | None = None
        self._deliveries: tuple[Elected, Deliveries] | None = None
        self._why_not: Exception | str = "it has not been elected"
        self._task: asyncio.Task[None] | None = None
        self._due = asyncio.Event()  # the session, or who is controller, has changed
        self._failures = 0
        self._failed_at_ms = 0
        self.controller_id = _UNKNOWN
        """Who is controller, as far as this broker knows; -1 while nobody is."""

    @property
    def office(self) -> Office:
        """The tenure at hand; raises NotController."""
        if self._office is None:
            raise NotController(f"this broker is not the controller: {self._why_not}")
        return self._office

    @property
    def is_in_office(self) -> bool:
        return self._office is not None

    def configure(self, settings: OfficeSettings) -> None:
        """The broker's settings are others now."""
        self._settings = settings
        if self._office is not None:
            self._office.configure(settings)

    # --- life ------------------------------------------------------------------------------------

    async def start(self, broker: BrokerImage, cluster_id: str, *, is_alone: bool) -> None:
        """Register, and be elected if nobody else is.

        Who `is_alone` has nobody to leave a trouble with that comes at once: it raises it, where
        others are candidates all the same.
        """
        self._broker = broker
        self._cluster_id = cluster_id
        self._store.on_session(self._session_changed)
        await self._register(broker)
        try:
            await self._stand_for_office()
        except (MetadataError, KafkaError) as error:
            if is_alone:
                raise
            await self._resign(error)
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def stop(self) -> None:
        """Decide nothing any more; whoever waits gets NotController."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._leave(NotController("the broker is stopping"))
        self._close_deliveries()

    async def _live(self) -> None:
        while True:
            try:
                if self._is_session_over:
                    await self._begin_session()
                if self._office is None:
                    await self._stand_for_office()
                if self._office is None:
                    await self._watch_the_controller()
                else:
                    await self._office.serve()
            except Exception as error:
                # Whatever it is: to go on would be to decide on what is not known to be true.
                await self._resign(error)
                await self._back_off()

    # --- the session -----------------------------------------------------------------------------

    @property
    def _is_session_over(self) -> bool:
        store = self._store
        return store.session_state is SessionState.EXPIRED or store.session_id != self._session_id

    def _session_changed(self, state: SessionState) -> None:
        if self._is_session_over and self._office is not None:
            self._office.agenda.end(SessionExpired(layout.CONTROLLER, "the session is over"))
        self._due.set()

    async def _begin_session(self) -> None:
        while self._store.session_state is not SessionState.CONNECTED:
            self._due.clear()
            await self._due.wait()
        assert self._broker is not None
        await self._register(self._broker)

    async def _register(self, broker: BrokerImage) -> None:
        session_ms = max(self._settings.session_timeout_ms, _SHORTEST_SESSION_MS)
        wait_ms = session_ms + session_ms // 2 + _ENDS_LATE_MS
        registered = await register(self._store, broker, self._clock, wait_ms)
        # Not the one in which it began: an earlier life may have been waited for, over a session.
        self._session_id = self._store.session_id
        self._registered(registered)

    async def is_whole(self) -> None:
        """This broker's registration warns of no loss from now on."""
        assert self._broker is not None
        self._broker = self._broker._replace(may_have_lost=False)
        data = layout.encode_broker(self._broker, self._clock.wall_ms())
        try:
            await self._store.commit([Set(layout.broker_path(self._broker.broker_id), data)])
        except MetadataError as error:
            # A controller that is elected before the next start is more careful than it need be.
            _log.info("the registration still warns of a loss: %s", error)

    # --- the office ------------------------------------------------------------------------------

    async def _stand_for_office(self) -> None:
        """Take the office if it is free, or still ours, and all that follows from it."""
        broker_id = self._seat.broker_id
        elected = await become_controller(self._store, broker_id, self._clock)
        if elected is None:
            elected = await office_of(self._store, broker_id)
        if elected is None:
            self._close_deliveries()
            return
        self.controller_id = broker_id
        self._office = office = Office(self._seat, elected, self._deliveries_of(elected))
        office.configure(self._settings)
        await office.begin(self._cluster_id)

    def _deliveries_of(self, elected: Elected) -> Deliveries:
        """The same for the whole of an epoch: what it says to a broker stays in its order."""
        if self._deliveries is not None and self._deliveries[0] == elected:
            return self._deliveries[1]
        self._close_deliveries()
        deliveries = self._new_deliveries()
        self._deliveries = elected, deliveries
        return deliveries

    def _close_deliveries(self) -> None:
        if self._deliveries is not None:
            self._deliveries[1].close()
            self._deliveries = None

    async def _watch_the_controller(self) -> None:
        """Return when there may be none, or when the session is over."""
        self._due.clear()
        self._store.watch(layout.CONTROLLER, self._due.set)
        node = await self._store.read(layout.CONTROLLER)
        if node is None:
            self.controller_id = _UNKNOWN
            return
        self.controller_id = layout.decode_controller(node.data)
        if not self._is_session_over:
            await self._due.wait()

    async def _resign(self, error: Exception) -> None:
        """What was begun is over; what is decided next follows from what the store holds then."""
        was_in_office = self._office is not None
        self._leave(error)
        if not was_in_office:
            _log.warning("not registered, or not a candidate for controller: %s", error)
            return
        self.controller_id = _UNKNOWN
        if _is_doubtful(error):
            # Nobody else need be in charge; but what the store holds has to be seen first.
            _log.warning("the controller resigns, to read everything again: %s", error)
            return
        self._close_deliveries()
        if isinstance(error, MetadataError | KafkaError):
            _log.warning("the controller resigns: %s", error)
        else:
            _log.error("the controller resigns", exc_info=error)
        if self._is_session_over:
            return
        try:
            await leave_office(self._store, self._seat.broker_id)
        except BarnabasError as failure:
            _log.warning("the office of the controller could not be left: %s", failure)

    def _leave(self, error: Exception) -> None:
        office, self._office = self._office, None
        self._why_not = error
        if office is not None:
            office.close(error)

    async def _back_off(self) -> None:
        """Not at all after one failure; longer and longer if they go on."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._failed_at_ms > _CALM_AGAIN_MS:
            self._failures = 0
        self._failed_at_ms = now_ms
        if self._failures:
            await asyncio.sleep(_BACKOFF_S * 2**self._failures)
        self._failures = min(self._failures + 1, _DOUBLINGS)


def _is_doubtful(error: Exception) -> bool:
    """Whether it only says that the store holds something else than was thought."""
    if isinstance(error, SessionExpired):
        return False
    is_deposed = isinstance(error, BadVersion) and error.path == layout.CONTROLLER_EPOCH
    return isinstance(error, MetadataError) and not is_deposed
