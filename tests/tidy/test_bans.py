"""What may not stand in the code, because it has bitten somebody before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy.source import Source, everything, sources

# What runs inside a broker, and so under virtual time in the simulator; Spark jobs do not.
BROKER_FOLDERS = tuple(
    f"src/barnabas/{name}"
    for name in (
        "broker",
        "client",
        "cluster",
        "controller",
        "net",
        "protocol",
        "records",
        "replication",
        "storage",
    )
)

# These wait for "any" of a set, whose order is that of addresses: a run could not be replayed.
UNREPEATABLE = {"wait", "as_completed", "TaskGroup"}
# It logs errors of work that was given up, from Python 3.14 on: `shielded` stands for it.
LOUD = {"shield"}

CLOCKS = {"time", "random", "uuid", "secrets", "datetime"}
# The entry of a real process measures its own start, passwords and certificates are made before a
# broker begins, quotas of time are about this machine's, and a log line states the process's own
# time; nothing in them is simulated.
NOT_SIMULATED = {
    "src/barnabas/broker/main.py",
    "src/barnabas/broker/quotas/counted_request.py",
    "src/barnabas/broker/runtime/process_log.py",
    "src/barnabas/broker/security/own_authority.py",
    "src/barnabas/broker/security/secure_setup.py",
}
# Converts UUIDs that are given, and makes none.
UUID_FORMAT = "src/barnabas/client/serialization.py"

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}

MUTATORS = {
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove",
    "setdefault", "update",
}  # fmt: skip


def test_nothing_waits_in_a_way_that_cannot_be_repeated_or_is_loud() -> None:
    found = [
        f"{file.at(node)} asyncio.{name}"
        for file in sources("src", "simulation")
        for node in file.nodes
        for name in _names_taken_from("asyncio", node)
        if name in UNREPEATABLE | LOUD
    ]
    assert found == []


def test_only_the_clock_reads_time_and_entropy() -> None:
    found = [
        f"{file.at(node)} imports {name}"
        for file in sources(*BROKER_FOLDERS)
        if file.path not in NOT_SIMULATED
        for node in file.nodes
        for name in _imported(node)
        if name.partition(".")[0] in CLOCKS - ({"uuid"} if file.path == UUID_FORMAT else set())
    ]
    assert found == [], "take barnabas.clock's Clock and Random instead"


def test_no_default_is_computed_when_the_module_loads() -> None:
    """`now=time.time()` is the time of the import for ever."""
    found = [
        f"{file.at(default)} {name}(...={ast.unparse(default)})"
        for file in sources("src", "simulation")
        for name, function in file.functions
        for default in [*function.args.defaults, *function.args.kw_defaults]
        if default is not None and any(isinstance(node, ast.Call) for node in ast.walk(default))
    ]
    assert found == []


def test_no_module_keeps_state() -> None:
    """Several brokers live in one process, so what one of them learns stays in its objects."""
    assert [found for file in sources("src", "simulation") for found in _module_state(file)] == []


def test_every_file_is_named_after_something() -> None:
    found = [
        file.path
        for file in everything()
        if VAGUE_NAMES & set(PurePosixPath(file.path).stem.split("_"))
    ]
    assert found == []


def test_nothing_is_left_for_later() -> None:
    # Put together here, so that this file does not find itself.
    marks = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImpl" + r"ementedError)\b")
    found = [
        f"{file.path}:{file.text.count(chr(10), 0, mark.start()) + 1} {mark.group()}"
        for file in everything()
        for mark in marks.finditer(file.text)
    ]
    assert found == []


def test_no_error_is_swallowed_without_a_word() -> None:
    """`except Exception: pass` hides the bug that it was written for, and every other one."""
    found = [
        f"{file.at(node)} {ast.unparse(node)!r}"
        for file in sources("src", "simulation")
        for node in file.nodes
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and all(isinstance(statement, ast.Pass) for statement in node.body)
    ]
    assert found == []


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module


def _names_taken_from(module: str, node: ast.AST) -> Iterator[str]:
    """`asyncio.wait` and `from asyncio import wait` alike."""
    if isinstance(node, ast.ImportFrom) and node.module == module:
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.Attribute) and _is_named(node.value, module):
        yield node.attr


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _module_state(file: Source) -> Iterator[str]:
    """Module-level names that a function assigns again or changes in place."""
    names = {
        target.id
        for statement in file.tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in _targets(statement)
        if isinstance(target, ast.Name)
    }
    for name, function in file.functions:
        nodes = tuple(ast.walk(function))
        shadowed = {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        } | {argument.arg for argument in nodes if isinstance(argument, ast.arg)}
        for node in nodes:
            if isinstance(node, ast.Global):
                yield f"{file.at(node)} {name}: global {', '.join(node.names)}"
            changed = _changed_in_place(node)
            if changed in names - shadowed:
                yield f"{file.at(node)} {name} changes {changed}"


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _changed_in_place(node: ast.AST) -> str | None:
    """The name of which `node` changes the contents: `x[k] = v`, `del x[k]`, `x.append(v)`."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        owner = node.value
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MUTATORS
    ):
        owner = node.func.value
    else:
        return None
    return owner.id if isinstance(owner, ast.Name) else None
