"""Applies changes to topic and broker settings while the broker is running (KIP-226).

    request -> edit the node's settings -> check -> commit them with a change node
            -> the watch on /config/changes -> read the entity again -> apply -> answer

When a client changes a setting, its request waits until this broker has applied the change. The
other brokers are notified by their watches. A change node only names the entity whose settings must
be read again. It does not contain the settings, so change nodes can be processed in any order or
skipped. Each node is removed a quarter of an hour after it was first seen. If the session ends
during this work, the work continues in the next session.

Invariant: all settings in the tree are in effect, except unusable ones. If someone edits a setting
by hand or another version writes it, it may be unknown, read-only or out of bounds. Such a setting
is logged and ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.configs.config_rules import (
    changes,
    check_change,
    in_question,
    log_changes,
    unusable,
)
from barnabas.broker.configs.entity_nodes import write_operations
from barnabas.broker.configs.stored_secrets import StoredSecrets
from barnabas.cluster import config_changes, layout
from barnabas.cluster.loading import children, load_topic_config
from barnabas.cluster.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataError,
    MetadataStore,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SessionExpired,
    SessionState,
    Set,
    Znode,
)
from barnabas.cluster.user_nodes import encoded_user
from barnabas.config import BrokerConfig, topic_keys, topic_warnings
from barnabas.errors import (
    BarnabasError,
    ConfigError,
    CorruptData,
    InvalidConfig,
    InvalidRequest,
    NotController,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.config_edit import Edit
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.clock import Clock

_log = logging.getLogger(__name__)

_CHANGES_KEPT_MS = 15 * 60 * 1000
_MOST_SKIPPED = 10_000
_ATTEMPTS = 10  # to write a node that others keep changing

_LOG_LEVEL = "barnabas.log.level"
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


BrokerConfigListener = Callable[["BrokerConfig"], None]
"""Called with the new broker configuration after each change."""

BrokerConfigCheck = Callable[["BrokerConfig"], None]
"""Called before a new configuration is accepted. Raises ConfigError to reject it."""


class TopicConfigs(Protocol):
    """Applies changed topic configs to the logs on this broker."""

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None: ...


class TopicConfigReport(Protocol):
    """Reports changed topics to the controller if the controller is active on this broker."""

    async def topic_config_changed(self, topic: str) -> None: ...


class EntityConfigs(Protocol):
    """Caches the settings of entities other than topics and brokers, such as users."""

    async def load(self) -> None:
        """Read the settings of all entities. Raises MetadataError."""
        ...

    async def on_changed(self, path: str) -> None:
        """Read one entity's settings again. `path` is relative to `/config`.

        Raises MetadataError.
        """
        ...


class DynamicConfig:
    """Applies config changes to this broker. Call `start` and `stop` once each."""

    __slots__ = (
        "_checks",
        "_clock",
        "_config",
        "_controller",
        "_due",
        "_failure",
        "_followed",
        "_listeners",
        "_logs",
        "_pending",
        "_pump_task",
        "_secrets",
        "_seen_at_ms",
        "_skipped",
        "_store",
        "_view",
        "_waiting",
    )

    def __init__(  # noqa: PLR0913  (the parts to notify and to use)
        self,
        store: MetadataStore,
        view: ClusterView,
        config: CurrentConfig,
        clock: Clock,
        logs: TopicConfigs,
        controller: TopicConfigReport,
        listeners: Sequence[BrokerConfigListener],
        checks: Sequence[BrokerConfigCheck] = (),
    ) -> None:
        self._store = store
        self._view = view
        self._config = config
        self._secrets = StoredSecrets(config.value)
        self._clock = clock
        self._logs = logs
        self._controller = controller
        self._listeners = list(listeners)
        self._followed: dict[str, list[EntityConfigs]] = {}  # keyed by the kind of entity
        self._checks = list(checks)
        self._seen_at_ms: dict[str, int] = {}  # when each change node was first seen
        self._pending: dict[str, None] = {}  # changed entities, the oldest first
        self._skipped: dict[str, None] = {}  # changed topics that are not known yet
        self._due = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # completed at the end of the next round
        self._failure: BarnabasError | None = None
        self._pump_task: asyncio.Task[None] | None = None

    def follow(self, kind: str, configs: EntityConfigs) -> None:
        """Pass all changes to entities of one kind (such as `users`) to `configs`. Must be called
        before `start`."""
        self._followed.setdefault(kind, []).append(configs)

    def add_listener(self, listener: BrokerConfigListener, check: BrokerConfigCheck) -> None:
        """Add a `check` for new settings and a `listener` that receives them. Must be called before
        `start`.
        """
        self._listeners.append(listener)
        self._checks.append(check)

    async def skip_past_changes(self) -> None:
        """Skip all changes made before this call. Called before the topics are loaded.

        A change made while the topics are being loaded is not skipped, because it may be newer than
        the topic configs that were read.
        """
        now_ms = self._clock.monotonic_ms()
        for name in await children(self._store, config_changes.CHANGES):
            self._seen_at_ms[name] = now_ms

    async def start(self) -> None:
        """Apply the broker settings in the tree, and all topic changes made since
        `skip_past_changes`.

        Must be called once the topics have been loaded.
        """
        before = self._config.value
        await self._take_up_brokers()
        if self._config.value is before and (before.per_broker or before.cluster_wide):
            self.apply(before)  # some listeners have applied the settings already
        keepers = chain.from_iterable(self._followed.values())
        for configs in {id(each): each for each in keepers}.values():
            await configs.load()
        for topic in self._view.image.topics.values():
            _log_unusable(topic.name, topic.config)
        if self._config.is_set(_LOG_LEVEL):
            apply_log_level(self._config.value)
        await self._round()
        self._store.on_session(self._on_session)
        self._pump_task = asyncio.get_running_loop().create_task(self._pump())

    async def stop(self) -> None:
        """Stop applying changes. Requests that are still waiting fail."""
        self._failure = UnknownServerError("the broker is stopping")
        if self._pump_task is not None:
            self._pump_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump_task
        waiting, self._waiting = self._waiting, []
        _complete(waiting, self._failure)

    def on_topics_known(self, topics: Iterable[str]) -> None:
        """Read the configs of skipped topics again if the controller has described them in the
        meantime.

        A change that was skipped because the topic was unknown may be newer than the configs that
        were read for the topic.
        """
        if not self._skipped:
            return
        for topic in topics:
            if topic in self._skipped:
                del self._skipped[topic]
                self._pending[config_changes.entity(config_changes.TOPICS, topic)] = None
                self._due.set()

    # --- changing --------------------------------------------------------------------------------

    async def alter_topic(self, topic: str, edit: Edit, *, validate_only: bool = False) -> None:
        """Change a topic's settings, and wait until its logs use them.

        Raises UnknownTopicOrPartition, InvalidConfig, or any error raised by `edit`.
        """
        entity = config_changes.entity(config_changes.TOPICS, topic)

        def decide(current: Mapping[str, str]) -> dict[str, str]:
            wanted = edit(current)
            useless = topic_keys.unusable(current)
            try:
                self._config.value.check_topic(in_question(current, wanted, useless))
            except ConfigError as error:
                raise InvalidConfig(str(error)) from None
            return wanted

        new = await self._alter(entity, decide, layout.topic_path(topic), validate_only)
        for warning in topic_warnings(new):
            _log.warning("topic %s: %s", topic, warning)

    async def alter_broker(
        self, broker_id: int | None, edit: Edit, *, validate_only: bool = False
    ) -> None:
        """Change the settings of this broker, or of all brokers if None, and wait until they are in
        effect.

        Raises InvalidRequest if a key is read-only or a value is invalid, InvalidConfig if a key is
        unknown, or any error raised by `edit`.
        """
        entity = config_changes.broker_entity(broker_id)
        is_for_all = broker_id is None

        def decide(stored: Mapping[str, str]) -> dict[str, str]:
            readable, unreadable = self._secrets.open(stored)
            current = {**readable, **{name: stored[name] for name in unreadable}}
            wanted = edit(current)
            for name, text in changes(current, wanted).items():
                check_change(name, text, is_for_all)
            useless = {**unusable(current, is_for_all), **unreadable}
            try:
                self._check_together(in_question(current, wanted, useless), is_for_all)
            except ConfigError as error:
                raise InvalidRequest(str(error)) from None
            return wanted if validate_only else self._secrets.seal(wanted, current, stored)

        await self._alter(entity, decide, None, validate_only)

    async def alter_user(self, user: str, edit: Edit) -> None:
        """Change the credentials or quotas of a user, and wait until this broker has applied them.

        A user's settings are secret and never appear in an error message. Raises InvalidConfig if
        the stored settings cannot be read, or any error raised by `edit`.
        """
        entity = config_changes.entity(config_changes.USERS, encoded_user(user))
        try:
            await self._alter(entity, edit, None, validate_only=False)
        except CorruptData:
            raise InvalidConfig(f"the settings of user {user!r} cannot be read") from None

    async def alter_entity(self, entity: str, edit: Edit, *, validate_only: bool = False) -> None:
        """Change the config of a user, client id or address, and wait until this broker has applied
        it.

        `entity` is its path relative to `/config`. The edit must preserve settings that it does not
        know. Raises any error raised by `edit`.
        """
        await self._alter(entity, edit, None, validate_only, is_kept_empty=False)

    def _check_together(self, wanted: Mapping[str, str], is_for_all: bool) -> None:
        """Raise ConfigError if the settings would make the broker's or any topic's configuration
        invalid.
        """
        now = self._config.value
        if is_for_all:
            after = now.with_dynamic(now.per_broker, wanted)
        else:
            after = now.with_dynamic(wanted, now.cluster_wide)
        for check in self._checks:
            check(after)
        for topic in self._view.image.topics.values():
            try:
                after.check_topic(topic.config)
            except ConfigError:
                if not topic_keys.unusable(topic.config):  # otherwise it was invalid before
                    raise

    async def _alter(
        self,
        entity: str,
        decide: Edit,
        guard: str | None,
        validate_only: bool,
        *,
        is_kept_empty: bool = True,
    ) -> dict[str, str]:
        """Write an entity's settings as edited by `decide`, provided that the node `guard` exists.

        If `is_kept_empty`, the node is kept even if no settings remain. Returns the new settings,
        or an empty dict if they were only validated.
        """
        path = config_changes.config_path(entity)
        for _ in range(_ATTEMPTS):
            operations: list[Operation] = []
            # If the topic is deleted concurrently, its configs must not be left for the next topic
            # with that name.
            if guard is not None:
                guarded = await self._read(guard)
                if guarded is None:
                    topic = entity.partition("/")[2]
                    raise UnknownTopicOrPartition(f"topic {topic} does not exist")
                operations.append(Check(guard, guarded.version))
            node = await self._read(path)
            current = {} if node is None else layout.decode_config(path, node.data)
            wanted = decide(current)
            if validate_only:
                return {}
            data = layout.encode_config(wanted)
            if is_kept_empty:
                operations.append(
                    Create(path, data) if node is None else Set(path, data, node.version)
                )
            else:
                operations += await write_operations(self._store, entity, node, wanted)
            operations.append(
                Create(
                    config_changes.CHANGE_PREFIX,
                    config_changes.encode_change(entity),
                    sequential=True,
                )
            )
            try:
                await self._store.commit(operations)
            except (BadVersion, NodeExists, NoNode, NotEmpty):
                continue  # another writer came first; retry with its settings
            except MetadataError as error:
                raise UnknownServerError(f"the metadata store does not answer: {error}") from error
            await self._whole_round()
            return changes(current, wanted)
        raise RequestTimedOut(
            f"the configs of {entity} were changed by other clients at every attempt; retry"
        )

    async def _read(self, path: str) -> Znode | None:
        """Read a node for a client's request."""
        try:
            return await self._store.read(path)
        except MetadataError as error:
            raise UnknownServerError(f"the metadata store does not answer: {error}") from error

    # --- applying --------------------------------------------------------------------------------

    async def _pump(self) -> None:
        while True:
            await self._due.wait()
            came_before = len(self._waiting)
            error: BarnabasError | None = None
            try:
                await self._round()
            except Exception as failure:
                # On any error, fail the waiting requests and continue with the next change.
                _log_failure(failure)
                error = UnknownServerError(f"the change was stored but not applied: {failure}")
            served, self._waiting = self._waiting[:came_before], self._waiting[came_before:]
            _complete(served, error)
            await self._has_session()

    async def _has_session(self) -> None:
        """If the session has ended, wait for the next session, which begins with a round."""
        is_over = False
        while self._store.session_state is SessionState.EXPIRED:
            is_over = True
            self._due.clear()
            await self._due.wait()
        if is_over:
            self._due.set()

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._due.set()

    async def _whole_round(self) -> None:
        """Wait for a round that begins after this call and so applies all changes committed before
        it.
        """
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._due.set()
        await future

    async def _round(self) -> None:
        self._due.clear()
        # Set the watch before reading, so that a change made in the meantime triggers another
        # round.
        self._store.watch(config_changes.CHANGES, self._due.set)
        now_ms = self._clock.monotonic_ms()
        names = await children(self._store, config_changes.CHANGES)
        for name in names:
            # Sequential names are never reused, so each node has to be read only once.
            if name not in self._seen_at_ms:
                entity = await self._entity_of(f"{config_changes.CHANGES}/{name}")
                self._seen_at_ms[name] = now_ms
                if entity is not None:
                    self._pending[entity] = None
        for entity in list(self._pending):
            del self._pending[entity]
            try:
                await self._take_up(entity)
            except CorruptData as error:
                _log.error("keeping the previous configs of %s: %s", entity, error)
            except MetadataError:
                self._pending[entity] = None
                raise
        await self._remove_old(frozenset(names), now_ms)

    async def _entity_of(self, path: str) -> str | None:
        node = await self._store.read(path)
        if node is None:
            return None  # it was removed by another broker
        try:
            return config_changes.decode_change(path, node.data)
        except CorruptData as error:
            _log.error("ignoring a malformed config change: %s", error)
            return None

    async def _take_up(self, entity: str) -> None:
        kind, _, name = entity.partition("/")
        if kind == config_changes.TOPICS:
            await self._take_up_topic(name)
        elif entity in self._own_entities:
            await self._take_up_brokers()
        for configs in self._followed.get(kind, ()):
            await configs.on_changed(entity)

    async def _take_up_topic(self, topic: str) -> None:
        if topic not in self._view.image.topics:
            # Either the topic was deleted, or it is so new that its configs will arrive with
            # LeaderAndIsr. But a controller on this broker may have read older configs without
            # having sent them yet.
            await self._report(topic)
            if topic not in self._view.image.topics:
                self._skip(topic)
                return
        overrides = await load_topic_config(self._store, topic)
        _log_unusable(topic, overrides)
        image = self._view.image
        known = image.topics.get(topic)
        if known is not None:
            # A LeaderAndIsr for another partition of the topic may not include the topic's configs.
            topics = {**image.topics, topic: known._replace(config=overrides)}
            self._view.update(image._replace(topics=MappingProxyType(topics)))
        self._logs.update_topic_config(topic, overrides)
        _log.info("topic %s: %s", topic, _shown(overrides))
        await self._report(topic)

    def _skip(self, topic: str) -> None:
        self._skipped[topic] = None
        if len(self._skipped) > _MOST_SKIPPED:
            del self._skipped[next(iter(self._skipped))]

    async def _report(self, topic: str) -> None:
        # If the controller resigns before this, the next term reads all settings anyway.
        with suppress(NotController):
            await self._controller.topic_config_changed(topic)

    @property
    def _own_entities(self) -> tuple[str, str]:
        broker_entity = config_changes.broker_entity
        return broker_entity(self._view.broker_id), broker_entity(None)

    async def _take_up_brokers(self) -> None:
        per_broker = await self._load(self._view.broker_id)
        cluster_wide = await self._load(None)
        before = self._config.value
        # An earlier round may already have read the settings that the change node refers to.
        if (per_broker, cluster_wide) == (before.per_broker, before.cluster_wide):
            return
        try:
            # Each setting is valid by itself, but may conflict with the properties file.
            after = before.with_dynamic(per_broker, cluster_wide)
        except ConfigError as error:
            _log.error("ignoring the changed configs of this broker: %s", error)
            return
        log_changes(before, after)
        self.apply(after)

    def apply(self, config: BrokerConfig) -> None:
        """Replace the broker's configuration and notify all listeners."""
        self._config.replace(config)
        for listener in self._listeners:
            listener(config)

    async def _load(self, broker_id: int | None) -> dict[str, str]:
        """Read the usable settings of one broker, or of all brokers, from the metadata tree."""
        path = config_changes.config_path(config_changes.broker_entity(broker_id))
        node = await self._store.read(path)
        try:
            stored = {} if node is None else layout.decode_config(path, node.data)
        except CorruptData as error:
            _log.error("ignoring unreadable configs: %s", error)
            return {}
        settings, unreadable = self._secrets.open(stored)
        reasons = {**unreadable, **unusable(settings, is_for_all=broker_id is None)}
        for reason in reasons.values():
            _log.error("%s: ignoring a setting: %s", path, reason)
        return {name: text for name, text in settings.items() if name not in reasons}

    async def _remove_old(self, names: frozenset[str], now_ms: int) -> None:
        """Remove change nodes that every broker has had enough time to read."""
        for name, seen_at_ms in list(self._seen_at_ms.items()):
            if name not in names:
                del self._seen_at_ms[name]
            elif now_ms - seen_at_ms >= _CHANGES_KEPT_MS:
                with suppress(NoNode):
                    await self._store.commit([Delete(f"{config_changes.CHANGES}/{name}")])
                del self._seen_at_ms[name]


def apply_log_level(config: BrokerConfig) -> None:
    """Apply `barnabas.log.level`. If it is not set, the level is left to the embedding program."""
    level = _LEVELS[config.str(_LOG_LEVEL)] if config.is_set(_LOG_LEVEL) else logging.NOTSET
    logging.getLogger("barnabas").setLevel(level)


def _log_unusable(topic: str, overrides: Mapping[str, str]) -> None:
    for reason in topic_keys.unusable(overrides).values():
        _log.error("topic %s: ignoring a setting: %s", topic, reason)


def _log_failure(failure: Exception) -> None:
    if isinstance(failure, SessionExpired):
        _log.warning("config changes will be applied in the next session: %s", failure)
    elif isinstance(failure, BarnabasError):
        _log.error("a config change was not applied: %s", failure)
    else:
        _log.error("a config change was not applied", exc_info=failure)


def _shown(settings: Mapping[str, str]) -> str:
    texts = ", ".join(f"{name}={text}" for name, text in settings.items())
    return texts or "no overrides"


def _complete(waiting: list[asyncio.Future[None]], error: Exception | None) -> None:
    for future in waiting:
        if future.done():  # cancelled
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
