"""`docs/api/`: the public classes, a page per noun, from their own signatures and docstrings.

python -m tests.tidy.api_reference      writes the pages
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import barnabas.client
from tests.kit.foreign import CHECKOUT
from tests.tidy.docstring_markdown import markdown
from tests.tidy.source import Function, Source, sources

DIRECTORY = CHECKOUT / "docs" / "api"
COMMAND = "python -m tests.tidy.api_reference"
WIDTH = 88


class Item(NamedTuple):
    """A class of a page."""

    module: str  # below src/barnabas
    name: str
    shown_as: str = ""  # for a part of another class: that class
    heading: str = ""
    core: str = ""  # for a blocking class: the page of the async one, whose methods it has


class Page(NamedTuple):
    """A noun."""

    stem: str
    title: str
    about: str
    items: tuple[Item, ...]
    aliases: tuple[tuple[str, str], ...] = ()  # types in its signatures: module, name


_SERVERS = ("client/config.py", "Servers")


def _admin(module: str, name: str, heading: str) -> Item:
    return Item(f"client/admin/{module}.py", name, "Admin", heading)


def _errors(module: str) -> Iterator[Item]:
    """The public errors of a module, in its order."""
    file = next(file for file in sources("src/barnabas") if file.path == f"src/barnabas/{module}")
    for node in file.tree.body:
        if isinstance(node, ast.ClassDef) and node.name in barnabas.client.__all__:
            yield Item(module, node.name)


PAGES = (
    Page(
        "producer",
        "Producer",
        "Sends records. Its options are on the page of [client options](../client-options.md).",
        (
            Item("client/producer/producer.py", "Producer"),
            Item("client/producer/batch.py", "ProducerRecord"),
            Item("client/producer/delivery.py", "Delivery"),
            Item("client/producer/batch_delivery.py", "BatchDelivery"),
            Item("client/producer/delivery.py", "RecordMetadata"),
        ),
        (_SERVERS, ("client/config.py", "ChoosePartition")),
    ),
    Page(
        "consumer",
        "Consumer",
        "Reads records. Its options are on the page of [client options](../client-options.md).",
        (
            Item("client/consumer/consumer.py", "Consumer"),
            Item("client/consumer/polls.py", "Polls", "Consumer", "Reading"),
            Item("client/consumer/lookups.py", "Lookups", "Consumer", "Looking up"),
            Item("client/consumer/fetched.py", "ConsumerRecord"),
            Item("client/consumer/subscription.py", "RebalanceListener"),
            Item("client/consumer/committed.py", "OffsetAndMetadata"),
            Item("client/consumer/committed.py", "GroupMetadata"),
            Item("client/offsets.py", "OffsetAndTimestamp"),
        ),
        (_SERVERS, ("client/consumer/commits.py", "Offsets")),
    ),
    Page(
        "admin",
        "Admin",
        "Reads and changes what is in a cluster.",
        (
            Item("client/admin/admin.py", "Admin"),
            _admin("acl_admin", "AclAdmin", "Rules of access control"),
            _admin("group_admin", "GroupAdmin", "Groups and their offsets"),
            _admin("partition_admin", "PartitionAdmin", "Elections and reassignments"),
            _admin("replica_admin", "ReplicaAdmin", "Replicas"),
            _admin("event_admin", "EventAdmin", "Events"),
            _admin("quota_admin", "QuotaAdmin", "Quotas"),
            _admin("scram_admin", "ScramAdmin", "Credentials of users"),
            _admin("token_admin", "TokenAdmin", "Delegation tokens"),
            _admin("transaction_admin", "TransactionAdmin", "Transactions"),
            *(
                Item("client/admin/admin.py", name)
                for name in (
                    "NewTopic",
                    "TopicDescription",
                    "BrokerDescription",
                    "ClusterDescription",
                )
            ),
            Item("client/admin/replica_admin.py", "LogDirDescription"),
            Item("client/admin/replica_admin.py", "ReplicaSize"),
            Item("client/view.py", "PartitionView"),
            *(
                Item("client/admin/configs.py", name)
                for name in (
                    "ConfigResource",
                    "ConfigOperation",
                    "ConfigOperationType",
                    "ConfigEntry",
                    "ConfigSynonym",
                )
            ),
            *(
                Item("client/admin/group_admin.py", name)
                for name in (
                    "GroupListing",
                    "GroupDescription",
                    "MemberDescription",
                    "RebalanceEvent",
                )
            ),
            *(
                Item(f"security/{module}.py", name)
                for module, name in (
                    ("acl_binding", "AclBinding"),
                    ("acl_binding", "Pattern"),
                    ("acl_binding", "AclEntry"),
                    ("acl_binding", "AclFilter"),
                    ("acl", "ResourceType"),
                    ("acl_binding", "PatternType"),
                    ("acl", "Operation"),
                    ("acl_binding", "PermissionType"),
                )
            ),
            Item("client/admin/partition_admin.py", "Reassignment"),
            Item("client/admin/replica_admin.py", "ReplicaEnd"),
            Item("client/admin/event_admin.py", "BrokerEvents"),
            Item("events.py", "Event"),
            Item("client/admin/scram_admin.py", "UserScramCredentialUpsertion"),
            Item("client/admin/scram_admin.py", "UserScramCredentialDeletion"),
            Item("client/admin/token_admin.py", "DelegationToken"),
            Item("client/admin/transaction_admin.py", "TransactionListing"),
            Item("client/admin/transaction_admin.py", "TransactionDescription"),
            Item("client/admin/transaction_admin.py", "ProducerState"),
        ),
        (
            _SERVERS,
            ("client/admin/admin_arguments.py", "Names"),
            ("client/arguments.py", "Partitions"),
            ("client/admin/admin_arguments.py", "ConfigText"),
            ("client/admin/admin_arguments.py", "ConfigOperations"),
            ("client/admin/quota_admin.py", "QuotaEntity"),
            ("client/admin/scram_admin.py", "ScramAlteration"),
        ),
    ),
    Page(
        "sync",
        "The blocking clients",
        "The same clients for programs without an event loop.",
        (
            Item("client/sync/producer.py", "SyncProducer", core="producer"),
            Item("client/sync/delivery.py", "SyncDelivery", core="producer"),
            Item("client/sync/consumer.py", "SyncConsumer", core="consumer"),
            Item("client/sync/admin.py", "SyncAdmin", core="admin"),
            Item("client/sync/blocking.py", "BlockingClient", "BlockingClient", "All three"),
        ),
    ),
    Page(
        "errors",
        "Errors",
        "What the clients raise; all of it can be imported from `barnabas.client`.",
        (
            *_errors("client/errors.py"),
            *_errors("errors/kafka_error.py"),
            *_errors("errors/partitions.py"),
            *_errors("errors/coordination.py"),
            *_errors("errors/security.py"),
            *_errors("errors/cluster.py"),
        ),
    ),
    Page(
        "broker",
        "Broker",
        "A broker inside this process.",
        (
            Item("testing/embedded/broker.py", "Broker"),
            Item("testing/embedded/life.py", "EmbeddedLife", "Broker", "Start and stop"),
            Item("testing/embedded/handle.py", "BrokerHandle", "Broker", "Read, write and wait"),
        ),
    ),
    Page(
        "cluster",
        "Cluster",
        "Several brokers inside this process.",
        (
            Item("testing/embedded/cluster.py", "Cluster"),
            Item("testing/embedded/life.py", "EmbeddedLife", "Cluster", "Start and stop"),
            Item("testing/embedded/handle.py", "BrokerHandle", "Cluster", "Read, write and wait"),
        ),
    ),
    Page(
        "testing",
        "Testing",
        "Topics, groups, snapshots and faults in the hands of a test.",
        (
            Item("testing/embedded/topic.py", "Topic"),
            Item("testing/embedded/group.py", "Group"),
            Item("testing/embedded/snapshot.py", "Snapshot"),
            Item("testing/embedded/waiting.py", "WaitTimeout"),
            Item("testing/remote_broker.py", "RemoteBroker"),
            Item("testing/faults/broker_faults.py", "Faults"),
            Item("testing/faults/cluster_faults.py", "ClusterFaults"),
            Item("testing/faults/rule.py", "Rule"),
        ),
    ),
)


def pages() -> dict[str, str]:
    """The text of each page, by its file's name."""
    modules = {file.path.removeprefix("src/barnabas/"): file for file in sources("src/barnabas")}
    index = [f"- [{page.title}]({page.stem}.md): {page.about.partition('. ')[0]}" for page in PAGES]
    lines = "\n".join(line if line.endswith(".") else f"{line}." for line in index)
    return {
        "README.md": f"# API reference\n\nWritten by `{COMMAND}` from the docstrings.\n\n{lines}\n",
        **{f"{page.stem}.md": _page(page, modules) for page in PAGES},
    }


def _page(page: Page, modules: dict[str, Source]) -> str:
    parts = [f"# {page.title}", page.about, f"Written by `{COMMAND}` from the docstrings."]
    for item in page.items:
        parts += _class(item, modules)
    if page.aliases:
        parts.append("## Types in the signatures")
    for module, name in page.aliases:
        parts += _alias(modules[module], name)
    return "\n\n".join(part for part in parts if part) + "\n"


def _class(item: Item, modules: dict[str, Source]) -> Iterator[str]:
    file = modules[item.module]
    found = class_of(file, item.name)
    name = item.shown_as or item.name
    yield f"## {item.heading or item.name}"
    docstring = ast.get_docstring(found, clean=False) or ""
    if not item.shown_as:
        functions = {node.name: node for node in found.body if isinstance(node, Function)}
        if _fields(found):
            yield _code(_definition(found, file))
        elif "__init__" in functions:
            yield _code(_signature(name, functions["__init__"]))
        yield markdown(docstring)
    for function in public_functions(found):
        yield f"### {name}.{function.name}"
        yield _code(_call(function))
        yield _about(item, function, modules)


def _alias(file: Source, name: str) -> Iterator[str]:
    """An assignment at the module's top level, with the text below it."""
    for node, following in itertools.pairwise(file.tree.body):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            yield _code(ast.unparse(node))
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                yield markdown(str(following.value.value))


def class_of(file: Source, name: str) -> ast.ClassDef:
    """The class of that name at the module's top level."""
    return next(
        node for node in file.tree.body if isinstance(node, ast.ClassDef) and node.name == name
    )


def public_functions(found: ast.ClassDef) -> list[Function]:
    """Methods and properties in the order of the source, without the variants for type checkers."""
    return [
        node
        for node in found.body
        if isinstance(node, Function)
        and not node.name.startswith("_")
        and not {"overload", "setter"} & _decorators(node)
    ]


def _about(item: Item, function: Function, modules: dict[str, Source]) -> str:
    docstring = ast.get_docstring(function, clean=False)
    if docstring:
        return markdown(docstring)
    core = item.name.removeprefix("Sync")
    if not item.core or not _has(core, function.name, modules):
        return ""
    anchor = f"{core}{function.name}".lower()
    return f"See [`{core}.{function.name}`]({item.core}.md#{anchor})."


def _decorators(function: Function) -> set[str]:
    return {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}


def _call(function: Function) -> str:
    if "property" in _decorators(function) or "cached_property" in _decorators(function):
        return f"{function.name}: {ast.unparse(function.returns) if function.returns else 'Any'}"
    return _signature(function.name, function)


def _has(core: str, method: str, modules: dict[str, Source]) -> bool:
    """Whether a page has a class of this name, or parts of it, with this method."""
    return any(
        method == function.name
        for page in PAGES
        for item in page.items
        if (item.shown_as or item.name) == core
        for function in public_functions(class_of(modules[item.module], item.name))
    )


def _signature(name: str, function: Function) -> str:
    """In one line where it fits, without `self`; of the constructor only what is called."""
    prefix = "async def " if isinstance(function, ast.AsyncFunctionDef) else "def "
    if function.name == "__init__":
        prefix = ""
    returns = ""
    if function.returns is not None and function.name != "__init__":
        returns = f" -> {ast.unparse(function.returns)}"
    parameters = list(_parameters(function.args))
    line = f"{prefix}{name}({', '.join(parameters)}){returns}"
    if len(line) <= WIDTH:
        return line
    return f"{prefix}{name}(\n" + "".join(f"    {each},\n" for each in parameters) + f"){returns}"


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    for each, default in zip(positional, [*defaults, *arguments.defaults], strict=True):
        if each.arg not in ("self", "cls"):
            yield _parameter(each, default)
    if arguments.vararg is not None:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(each, default)
    if arguments.kwarg is not None:
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
    if default is None:
        return f"{argument.arg}{annotation}"
    return f"{argument.arg}{annotation}{' = ' if annotation else '='}{ast.unparse(default)}"


def _fields(found: ast.ClassDef) -> list[ast.stmt]:
    """Of a tuple or an enumeration."""
    is_value = {"NamedTuple", "TypedDict", "IntEnum"} & {ast.unparse(base) for base in found.bases}
    return [n for n in found.body if is_value and isinstance(n, ast.AnnAssign | ast.Assign)]


def _definition(found: ast.ClassDef, file: Source) -> str:
    """As in the source, whose comments have the units."""
    fields = _fields(found)
    lines = file.text.split("\n")
    body = lines[fields[0].lineno - 1 : fields[-1].end_lineno]
    return "\n".join([lines[found.lineno - 1], *body])


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in pages().items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")
