"""Implements `kafka-configs.sh --zookeeper`, which reads and writes the nodes under /config.

    /config/users/<user>         SCRAM credentials, to create the first user of a cluster
    /config/brokers/<id>         settings of a stopped broker

As in Kafka 3.9.1, these two are written to ZooKeeper, with a notification for the brokers. Configs
that only older versions write to ZooKeeper (topic configs, quotas) are sent to the brokers instead,
which validate them. The output then matches 2.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from barnabas.cli.configs.changes import BadChange, parse_names, parse_pairs
from barnabas.cli.configs.users import scram_alterations
from barnabas.cli.kafka import client_configs
from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.tool import admin_of
from barnabas.cli.kafka.zookeeper_brokers import (
    at_brokers,
    check_chroot,
    open_store,
    warn_of_zookeeper,
    zookeeper_settings,
)
from barnabas.cli.options import run_client
from barnabas.client.admin.configs import (
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
)
from barnabas.client.admin.scram_admin import SCRAM_MECHANISMS, UserScramCredentialUpsertion
from barnabas.cluster import config_changes, layout
from barnabas.cluster.config_changes import BROKERS, DEFAULT, TOPICS, USERS
from barnabas.cluster.store import BadVersion, Create, NodeExists, NoNode
from barnabas.cluster.user_nodes import decoded_user, encoded_user
from barnabas.config import load_properties
from barnabas.errors import BarnabasError, ConfigError
from barnabas.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, new_credential

if TYPE_CHECKING:
    from barnabas.cluster.store import MetadataStore, Operation
    from barnabas.cluster.zookeeper_settings import Settings

_CLIENTS: Final = "clients"
_KINDS: Final = (TOPICS, _CLIENTS, USERS, BROKERS)
_TYPES: Final = {"user": USERS, "client-id": _CLIENTS}
_WORDS: Final = {TOPICS: "topic", _CLIENTS: "client-id", USERS: "user-principal"}
_ENCODER: Final = "password.encoder."
_ATTEMPTS: Final = 20  # an attempt fails only if another writer is faster
_NOT_RUNNING: Final = (
    "Broker configuration operations using ZooKeeper are only supported if the affected broker(s) "
    "are not running."
)

Edit = Callable[[dict[str, str]], dict[str, str]]


class Entity(NamedTuple):
    """Identifies the owner of configs: a kind and a name, and perhaps a user's client. None stands
    for all names.
    """

    kind: str
    name: str | None
    has_clients: bool = False
    client: str | None = None

    def path(self) -> str:
        """Return the path under /config. All names of the entity must be known."""
        of_client = f"/{_CLIENTS}/{self.client}" if self.has_clients else ""
        return f"{self.kind}/{self.name}{of_client}"

    def __str__(self) -> str:
        """Return the owner as Kafka describes it."""
        words = _words(self.kind, self.name)
        return f"{words}, {_words(_CLIENTS, self.client)}" if self.has_clients else words


def _words(kind: str, node: str | None) -> str:
    word = _WORDS.get(kind, kind)
    if node is None:
        return kind
    if node == DEFAULT:
        return f"default {word}"
    return f"{word} '{decoded_user(node) if kind in (USERS, _CLIENTS) else node}'"


def check(given: Given) -> None:
    """Raise BadCommandLine for options valid only with brokers, or only with ZooKeeper."""
    if "zookeeper" not in given:
        given.only_with("zk-tls-config-file", "zookeeper")
    elif "all" in given:
        raise BadCommandLine("--bootstrap-server must be specified for --all")


def run(given: Given, action: str, resource: Callable[[], tuple[str, list[str] | None]]) -> None:
    """Execute the action. `resource` returns the kind and names if topics or brokers are concerned.

    Raises BarnabasError.
    """
    entity = _entity(given, resource)
    warn_of_zookeeper()
    if action == "describe":
        run_client(_describe(_settings(given), entity))
        return
    if entity.name is None or (entity.has_clients and entity.client is None):
        raise BadCommandLine(
            "--entity-name or --entity-default must be specified with each --entity-type for "
            "--alter"
        )
    # The broker is stopped, so only `_broker_edit` checks its settings.
    if entity.kind == BROKERS:
        run_client(_write(_settings(given), entity, _broker_edit(given, entity)))
    # This can create a cluster's first user, before any broker can authenticate an administrator.
    elif entity.kind == USERS and _is_about_scram(given):
        run_client(_write(_settings(given), entity, _scram_edit(given, entity)))
    else:
        # With --zookeeper, 3.9.1 rejects these configs, and 2.3.1 wrote them unchecked. The brokers
        # check them.
        at = at_brokers(given)
        run_client(_alter_topic(at, entity) if entity.kind == TOPICS else client_configs.change(at))
        # 2.3.1 writes "Updating", 3.9.1 "updating" (below).
        click.echo(f"Completed Updating config for entity: {entity}.")
        return
    click.echo(f"Completed updating config for entity: {entity}.")


def _settings(given: Given) -> Settings:
    """Return the settings for connecting to ZooKeeper. If ZooKeeper authenticates us, we own new
    nodes, as in Kafka.
    """
    settings = zookeeper_settings(given, given.text("zk-tls-config-file"))
    return settings._replace(is_protected=settings.is_protected or settings.has_identity)


def _entity(given: Given, resource: Callable[[], tuple[str, list[str] | None]]) -> Entity:
    if client_configs.is_about_clients(given):
        names, types = client_configs.entity_of_line(given)
        nodes = {
            kind: DEFAULT if name is None else encoded_user(name) for kind, name in names.items()
        }
        kinds = {*names, *types}
        # Quotas for addresses (KIP-612) are newer than --zookeeper.
        if "ip" in kinds:
            raise _bad_kind("ips")
        if len(kinds) == 1:
            [kind] = kinds
            return Entity(_TYPES[kind], nodes.get(kind))
        # A user with a client id is a node under the user: users/<user>/clients/<id>.
        return Entity(USERS, nodes.get("user"), True, nodes.get("client-id"))
    kind, given_names = resource()
    if kind not in _KINDS:
        raise _bad_kind(kind)
    if given_names is not None and len(given_names) > 1:
        raise BadCommandLine("--entity-name is given more than once: leave out all but one")
    return Entity(kind, None if given_names is None else given_names[0] or DEFAULT)


def _bad_kind(kind: str) -> BadCommandLine:
    return BadCommandLine(
        f"Invalid entity type {kind}, the entity type must be one of {', '.join(_KINDS)} with a "
        "--zookeeper argument"
    )


async def _describe(settings: Settings, entity: Entity) -> None:
    async with open_store(settings) as store:
        await check_chroot(store, settings.connect)
        if entity.kind == BROKERS:
            if entity.name is None:
                raise BadCommandLine(
                    "--entity-name or --entity-default is needed: one broker, or the defaults of "
                    "all"
                )
            # A running broker's settings also come from its file and defaults, so ask the broker.
            await _refuse_running(store, entity, "describe")
        for each in await _every(store, entity):
            configs = await _configs(store, each)
            if configs or entity != Entity(USERS, None):  # many users have client quotas only
                texts = ",".join(f"{name}={configs[name]}" for name in sorted(configs))
                click.echo(f"Configs for {each} are {texts}")


async def _every(store: MetadataStore, entity: Entity) -> list[Entity]:
    """Return the named entities that an unnamed one stands for."""
    if entity.name is None:
        named = [entity._replace(name=name) for name in await _names(store, entity.kind)]
    else:
        named = [entity]
    if not entity.has_clients or entity.client is not None:
        return named
    return [
        each._replace(client=client)
        for each in named
        for client in await _names(store, f"{each.kind}/{each.name}/{_CLIENTS}")
    ]


async def _names(store: MetadataStore, below: str) -> list[str]:
    node = await store.read(config_changes.config_path(below))
    return [] if node is None else sorted(node.children)


async def _configs(store: MetadataStore, entity: Entity) -> dict[str, str]:
    path = config_changes.config_path(entity.path())
    node = await store.read(path)
    return {} if node is None else layout.decode_config(path, node.data)


async def _refuse_running(store: MetadataStore, entity: Entity, verb: str) -> None:
    """Raise ConfigError if a broker to which the configs belong is running, because it would not
    check them.
    """
    node = await store.read(layout.BROKER_IDS)
    running = [] if node is None else list(node.children)
    if entity.name == DEFAULT and running:
        reason = f"{len(running)} brokers are running"
    elif entity.name in running:
        reason = f"broker {entity.name} is running"
    else:
        return
    raise ConfigError(
        f"--bootstrap-server option must be specified to {verb} {BROKERS} configs - {reason}. "
        f"{_NOT_RUNNING}"
    )


async def _write(settings: Settings, entity: Entity, edit: Edit) -> None:
    """Change the node and notify the brokers, in one commit."""
    async with open_store(settings) as store:
        await check_chroot(store, settings.connect)
        if entity.kind == BROKERS:
            await _refuse_running(store, entity, "update")
        # The commit is optimistic, so it fails and is retried if the version has changed.
        for _ in range(_ATTEMPTS):
            try:
                await store.commit(await _operations(store, entity, edit))
            except (NodeExists, BadVersion, NoNode):
                continue
            return
    raise ConfigError(f"/config/{entity.path()} keeps changing: nothing was written")


async def _operations(store: MetadataStore, entity: Entity, edit: Edit) -> list[Operation]:
    from barnabas.broker.configs.entity_nodes import write_operations

    path = config_changes.config_path(entity.path())
    node = await store.read(path)
    # The commit replaces the whole node, so start from its current content.
    configs = edit({} if node is None else layout.decode_config(path, node.data))
    operations: list[Operation] = []
    if await store.read("/config") is None:  # no broker has ever been started
        operations.append(Create("/config"))
    if await store.read(config_changes.CHANGES) is None:
        operations.append(Create(config_changes.CHANGES))
    kind_path = config_changes.config_path(entity.kind)
    if await store.read(kind_path) is None:
        operations.append(Create(kind_path))
    operations += [
        each
        for each in await write_operations(store, entity.path(), node, configs)
        if not (isinstance(each, Create) and each in operations)
    ]
    # Brokers watch /config/changes, and read the entity that a new node refers to.
    change = config_changes.encode_change(entity.path())
    return [*operations, Create(config_changes.CHANGE_PREFIX, change, sequential=True)]


def _configs_to_add(given: Given) -> dict[str, str]:
    """Return the pairs in --add-config or --add-config-file. Raises BadCommandLine if there are
    none.
    """
    path = given.text("add-config-file")
    if path is not None:
        return load_properties(path)
    try:
        return parse_pairs(given.texts("add-config"), "--add-config")
    except BadChange:
        raise BadCommandLine(
            '--add-config: all configs to be added must be in the format "key=val", a value with '
            "commas in []"
        ) from None


def _names_to_delete(given: Given) -> list[str]:
    try:
        return parse_names(given.texts("delete-config"), "--delete-config")
    except BadChange as error:
        raise BadCommandLine(str(error)) from error


def _is_about_scram(given: Given) -> bool:
    return any(
        name in SCRAM_MECHANISMS for name in [*_configs_to_add(given), *_names_to_delete(given)]
    )


def _edit(
    configs: Mapping[str, str], added: Mapping[str, str], deleted: list[str]
) -> dict[str, str]:
    """Return the edited configs. Raises BadCommandLine, with Kafka's message, if a config to delete
    is not set.
    """
    unset = [name for name in deleted if name not in configs]
    if unset:
        raise BadCommandLine(f"Invalid config(s): {','.join(unset)}")
    return {name: text for name, text in {**configs, **added}.items() if name not in deleted}


def _scram_edit(given: Given, entity: Entity) -> Edit:
    """Return the change to a user's credentials. No message shows text that may be a password."""
    user = decoded_user(entity.name or "")
    if entity.has_clients or user is None:
        raise BadCommandLine("SCRAM credentials belong to one user: name the user, and no client")
    # Splitting the option removed the brackets, so a value may contain commas.
    pairs = [f"{name}=[{value}]" for name, value in _configs_to_add(given).items()]
    try:
        wanted = scram_alterations(user, pairs, _names_to_delete(given))
    except BadChange as error:
        raise BadCommandLine(str(error)) from None
    added = {}
    for each in wanted:
        # `_edit` applies the deletions. It rejects the deletion of a config that is not set.
        if not isinstance(each, UserScramCredentialUpsertion):
            continue
        if not MIN_ITERATIONS <= each.iterations <= MAX_ITERATIONS:
            raise BadCommandLine(
                f"Iterations {each.iterations} of {each.mechanism}: not from {MIN_ITERATIONS} to "
                f"{MAX_ITERATIONS}"
            )
        # ZooKeeper stores the salt, keys and iterations (RFC 5802), but never the password.
        credential = new_credential(each.mechanism, each.password, each.iterations)
        added[each.mechanism] = credential.text()
    return lambda configs: _edit(configs, added, _names_to_delete(given))


def _broker_edit(given: Given, entity: Entity) -> Edit:
    """Return the change to a broker's settings, with passwords encrypted by a secret that is not
    stored.
    """
    from barnabas.broker.configs.config_rules import check_change
    from barnabas.broker.configs.stored_secrets import StoredSecrets
    from barnabas.config import BrokerConfig, key_of

    pairs = _configs_to_add(given)
    # As in 3.9.1, the secret encrypts passwords in the settings, but is not itself written.
    encoder = {name: text for name, text in pairs.items() if name.startswith(_ENCODER)}
    added = {name: text for name, text in pairs.items() if name not in encoder}
    try:
        for name, text in added.items():
            # Check what the broker would check. It is stopped, so it would find errors only when it
            # starts.
            check_change(name, text, entity.name == DEFAULT)
            key_of(name).parse(text)
        sealed = StoredSecrets(BrokerConfig(encoder)).seal(added, {}, {})
    except BarnabasError as error:
        raise BadCommandLine(f"--add-config: {error}") from None
    return lambda configs: _edit(configs, sealed, _names_to_delete(given))


async def _alter_topic(given: Given, entity: Entity) -> None:
    resource = ConfigResource(TOPIC, entity.name or "")
    added, deleted = _configs_to_add(given), _names_to_delete(given)
    async with admin_of(given) as admin:
        own = {
            each.name: each.value or ""
            for each in await admin.describe_configs(resource)
            if each.source == DYNAMIC_TOPIC_CONFIG
        }
        # This call only rejects deletions of configs that are not set. The brokers apply the
        # change.
        _edit(own, added, deleted)
        await admin.alter_configs(
            resource,
            [
                *(ConfigOperation(n, ConfigOperationType.SET, text) for n, text in added.items()),
                *(ConfigOperation(n, ConfigOperationType.DELETE) for n in deleted),
            ],
        )
