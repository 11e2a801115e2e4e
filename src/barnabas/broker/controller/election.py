"""Takes part in controller elections, and manages this broker's session and terms (ZK-3).

    register -> try to be elected -> controller: serve until the term ends -> watch the controller
        ^               ^______________________________________________________|
        |_______ the session expires

Among the brokers that share a metadata store, the controller is the broker that created
`/controller`. The other brokers watch that node and try to create it when it has been deleted. Any
error ends the entire term (`ControllerTerm`). The next term, on this broker or another one, begins
by reading the whole state. When a broker's session expires, the broker drops all the state of that
session and registers again under a new broker epoch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.broker.controller.broker_channels import BrokerChannels
from barnabas.broker.controller.controller_settings import ControllerContext, ControllerSettings
from barnabas.broker.controller.event_loop import ControllerTerm
from barnabas.broker.controller.registration import (
    Elected,
    become_controller,
    elected_term,
    register,
    resign,
)
from barnabas.clock import Clock
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import ControlRequest
from barnabas.cluster.image import BrokerImage
from barnabas.cluster.store import BadVersion, MetadataError, SessionExpired, SessionState, Set
from barnabas.errors import BarnabasError, KafkaError, NotController
from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.controller.peer_connection import Codes
    from barnabas.cluster.store import MetadataStore

_log = logging.getLogger(__name__)

# A session from before a restart expires at most one tick late. ZooKeeper's minimum session timeout
# is two ticks, which is 4 s by default. `_ENDS_LATE_MS` leaves a margin for a busy ZooKeeper host.
_SHORTEST_SESSION_MS = 4_000
_ENDS_LATE_MS = 1_000

_BACKOFF_S = 0.05
_DOUBLINGS = 7
_CALM_AGAIN_MS = 20_000
"""If no failure occurs for this long, the next failure counts as the first one."""

UNKNOWN = -1
_FIRST_EPOCH = 1

Registered = Callable[[int], None]
"""Called after each registration with the new broker epoch."""


class ControllerElection:
    """Takes part in the election on behalf of this broker. Call `start` and `stop` once each."""

    __slots__ = (
        "_broker",
        "_channels",
        "_clock",
        "_cluster_id",
        "_context",
        "_due",
        "_failed_at_ms",
        "_failures",
        "_previous",
        "_registered",
        "_session_id",
        "_settings",
        "_store",
        "_task",
        "_term",
        "_why_not",
        "controller_id",
    )

    def __init__(
        self,
        context: ControllerContext,
        clock: Clock,
        settings: ControllerSettings,
        registered: Registered,
    ) -> None:
        self._store = context.store
        self._context = context
        self._clock = clock
        self._settings = settings
        self._registered = registered
        self._broker: BrokerImage | None = None
        self._cluster_id = ""
        self._session_id = 0  # the session in which this broker is registered
        self._term: ControllerTerm | None = None
        self._channels: tuple[Elected, BrokerChannels] | None = None
        self._why_not: Exception | str = "it has not been elected"
        self._previous = Previous()
        self._task: asyncio.Task[None] | None = None
        self._due = asyncio.Event()  # set when the session or the controller changes
        self._failures = 0
        self._failed_at_ms = 0
        self.controller_id = UNKNOWN
        """The id of the current controller as far as this broker knows, or -1 if there is none."""

    def term(self) -> ControllerTerm:
        """The current term of this broker. Raises NotController if there is none."""
        if self._term is None:
            raise NotController(f"this broker is not the controller: {self._why_not}")
        return self._term

    @property
    def is_active(self) -> bool:
        """Whether this broker is currently the controller."""
        return self._term is not None

    def configure(self, settings: ControllerSettings) -> None:
        """Apply broker settings that have changed."""
        self._settings = settings
        if self._term is not None:
            self._term.configure(settings)

    # --- lifecycle -------------------------------------------------------------------------------

    async def start(self, broker: BrokerImage, cluster_id: str) -> None:
        """Register this broker, and become the controller if there is none.

        On a standalone broker, errors are raised immediately because no other broker could take
        over.
        """
        self._broker = broker
        self._cluster_id = cluster_id
        # Set the callback before registering, because the session may expire while the broker
        # registers.
        self._store.on_session(self._session_changed)
        await self._register(broker)
        try:
            await self._try_to_be_elected()
        except (MetadataError, KafkaError) as error:
            # A standalone broker that is not the controller cannot do any useful work.
            if self._context.peers is None:
                raise
            await self._resign(error)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the term. All callers that are still waiting get NotController."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._end_term(NotController("the broker is stopping"))
        self._close_channels()

    async def _run(self) -> None:
        while True:
            try:
                if self._is_session_over:
                    await self._begin_session()
                if self._term is None:
                    await self._try_to_be_elected()
                if self._term is None:
                    await self._watch_controller()
                else:
                    await self._term.serve()
            except Exception as error:
                # Stop on any error, because further decisions might be based on incorrect state.
                await self._resign(error)
                await self._back_off()

    # --- the session -----------------------------------------------------------------------------

    @property
    def is_registered(self) -> bool:
        """Return whether this broker still has the session in which it registered itself."""
        return not self._is_session_over

    @property
    def _is_session_over(self) -> bool:
        store = self._store
        return store.session_state is SessionState.EXPIRED or store.session_id != self._session_id

    def _session_changed(self, state: SessionState) -> None:
        # ZK-5: another broker may already be the controller, so this term must make no further
        # decisions.
        if self._is_session_over and self._term is not None:
            self._term.events.end(SessionExpired(layout.CONTROLLER, "the session has expired"))
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
        # Read the id again. The session in which registration began may have expired while this
        # broker was waiting for its previous session to end.
        self._session_id = self._store.session_id
        self._context.view.on_registered(registered.epoch)
        self._registered(registered.epoch)

    async def withdraw_loss_warning(self) -> None:
        """Clear this registration's warning that records may have been lost."""
        assert self._broker is not None
        self._broker = self._broker._replace(may_have_lost=False)
        data = layout.encode_broker(self._broker, self._clock.wall_ms())
        try:
            await self._store.commit([Set(layout.broker_path(self._broker.broker_id), data)])
        except MetadataError as error:
            # Until this broker starts again, new controllers will be more cautious than necessary.
            _log.info(
                "cannot clear the warning about lost records from this broker's registration: %s",
                error,
            )

    # --- terms -----------------------------------------------------------------------------------

    async def _try_to_be_elected(self) -> None:
        """Start a term if there is no controller, or if this broker is still registered as the
        controller.
        """
        broker_id = self._context.view.broker_id
        elected = await become_controller(self._store, broker_id, self._clock)
        if elected is None:
            elected = await elected_term(self._store, broker_id)
        if elected is None:
            self._close_channels()
            return
        self.controller_id = broker_id
        cause = await election_cause(self._store, broker_id, elected.epoch, self._previous)
        channels = self._channels_of(elected)
        self._term = term = ControllerTerm(self._context, self._settings, elected, channels)
        await term.begin(self._cluster_id, cause)

    def _channels_of(self, elected: Elected) -> BrokerChannels:
        """Return the channels for this epoch. All terms of an epoch share them so that requests
        stay in order.
        """
        if self._channels is not None and self._channels[0] == elected:
            return self._channels[1]
        self._close_channels()
        context = self._context
        channels = BrokerChannels(
            context.view.broker_id,
            context.deliver,
            context.peers,
            self._settings.timeout_ms,
            self._on_answer,
            self._on_deposed,
            self._versions_learned,
        )
        self._channels = elected, channels
        return channels

    def _on_answer(self, broker_id: int, request: ControlRequest, codes: Codes) -> None:
        if self._term is not None:
            self._term.on_answer(broker_id, request, codes)

    def _versions_learned(self) -> None:
        if self._term is not None:
            self._term.events.on_versions()

    def _on_deposed(self, error: Exception) -> None:
        if self._term is not None:
            self._term.events.end(error)

    def _close_channels(self) -> None:
        if self._channels is not None:
            self._channels[1].close()
            self._channels = None

    async def _watch_controller(self) -> None:
        """Wait until the session has expired or there may be no controller."""
        self._due.clear()
        # Set the watch before reading, so that any change made in the meantime sets the event
        # again.
        self._store.watch(layout.CONTROLLER, self._due.set)
        node = await self._store.read(layout.CONTROLLER)
        if node is None:
            self.controller_id = UNKNOWN
            return
        self.controller_id = layout.decode_controller(node.data)
        seen = await self._store.read(layout.broker_path(self.controller_id))
        self._previous = Previous(self.controller_id, UNKNOWN if seen is None else seen.czxid)
        if not self._is_session_over:
            await self._due.wait()

    async def _resign(self, error: Exception) -> None:
        """End the term. The next term starts from the state in the metadata store."""
        was_active = self._term is not None
        self._end_term(error)
        if not was_active:
            _log.warning("this broker cannot register or become controller: %s", error)
            return
        self.controller_id = UNKNOWN
        if _is_doubtful(error):
            # There may be no other controller, but the state must be read from the store again
            # first.
            _log.warning(
                "controller resigned; reloading its state from the metadata store: %s", error
            )
            return
        self._close_channels()
        if isinstance(error, MetadataError | KafkaError):
            _log.warning("controller resigned: %s", error)
        else:
            _log.error("controller resigned", exc_info=error)
        if self._is_session_over:
            return
        try:
            await resign(self._store, self._context.view.broker_id)
        except BarnabasError as failure:
            _log.warning("cannot delete %s: %s", layout.CONTROLLER, failure)

    def _end_term(self, error: Exception) -> None:
        term, self._term = self._term, None
        self._why_not = error
        if term is not None:
            self._previous = Previous(self._context.view.broker_id, own_end=error)
            term.close(error)

    async def _back_off(self) -> None:
        """Retry immediately after the first failure, and with increasing delays after further
        failures.
        """
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._failed_at_ms > _CALM_AGAIN_MS:
            self._failures = 0
        self._failed_at_ms = now_ms
        if self._failures:
            await asyncio.sleep(_BACKOFF_S * 2**self._failures)
        self._failures = min(self._failures + 1, _DOUBLINGS)


def _is_doubtful(error: Exception) -> bool:
    """Return whether the error only indicates that the state in the store has changed."""
    if isinstance(error, SessionExpired):
        return False
    is_deposed = isinstance(error, BadVersion) and error.path == layout.CONTROLLER_EPOCH
    return isinstance(error, MetadataError) and not is_deposed


class Previous(NamedTuple):
    """Holds what this broker knows about the last controller."""

    broker_id: int = UNKNOWN
    broker_epoch: int = UNKNOWN
    """That broker's registration epoch while it was the controller."""
    own_end: Exception | None = None
    """The error that ended this broker's own last term, if any."""


async def election_cause(
    store: MetadataStore, broker_id: int, epoch: int, previous: Previous
) -> str:
    """Return why there was no controller before this broker was elected in this epoch (IN-1).

    A broker knows who the last controller was if it was watching `/controller`. When a session
    ends, ZooKeeper deletes that node together with the broker's registration. If the registration
    has not changed, the session has not ended, so somebody must have deleted the node. Anything
    that this broker cannot find out, such as why a session ended, is reported as unknown.
    """
    last, known_epoch, own_end = previous
    if last == broker_id:
        if own_end is None:
            return f"the session of an earlier run of broker {broker_id}, the controller, ended"
        if isinstance(own_end, SessionExpired):
            return f"the session of broker {broker_id}, the previous controller, expired"
        return f"broker {broker_id}, the previous controller, resigned: {own_end}"
    if epoch == _FIRST_EPOCH:
        return "this is the first controller of the cluster"
    if last == UNKNOWN:
        return (
            "not known: there was no controller when this broker started, and it has not seen the "
            "previous one"
        )
    node = await store.read(layout.broker_path(last))
    if node is not None and node.czxid == known_epoch:
        return (
            f"broker {last}, the previous controller, is still registered: it resigned, or a tool "
            "deleted /controller"
        )
    if node is not None and known_epoch == UNKNOWN:
        return f"broker {last} was the previous controller; it is not known why its term ended"
    return (
        f"the session of broker {last}, the previous controller, ended: it stopped, failed or "
        "lost its connection to the metadata store"
    )
