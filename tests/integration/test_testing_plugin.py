"""TK-2: the fixtures as somebody else's suite has them: each test here runs a pytest of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.processes.pytest_process import run_pytest

EVERYTHING = '''
import asyncio
import barnabas
import pytest

def test_first_record(barnabas_producer, barnabas_topic, barnabas_consumer, barnabas_broker):
    barnabas_producer.send(barnabas_topic.name, b"one")
    records = []
    while not records:
        records = barnabas_consumer.poll(1000)
    assert [record.value for record in records] == [b"one"]
    barnabas_broker.wait_for(group=barnabas_topic.name, state="Stable", members=1)

@pytest.mark.parametrize("value", ["a b", "c/d"])
def test_each_has_a_topic_of_its_own(barnabas_topic, value):
    assert barnabas_topic.values() == []
    barnabas_topic.send(value)
    assert barnabas_topic.values() == [value.encode()]

def test_on_a_loop(barnabas_broker, barnabas_topic):
    """As plug-ins for coroutines run it: the fixtures are plain, the loop is the test's own."""
    from barnabas.client import Consumer, Producer

    async def scene():
        async with Producer(barnabas_broker.bootstrap_servers) as producer:
            await (await producer.send(barnabas_topic.name, b"one"))
        async with barnabas.Broker() as other:
            assert other.port != barnabas_broker.port

    asyncio.run(scene())
    assert barnabas_topic.values() == [b"one"]

@pytest.mark.barnabas(brokers=2, config={"num.partitions": 4})
def test_a_marker_has_arguments(barnabas_cluster):
    assert barnabas_cluster.running_broker_ids == [1, 2]
    assert barnabas_cluster.topic("t").partitions == [0, 1, 2, 3]

def test_configs_of_all(barnabas_broker):
    assert barnabas_broker.topic("t").partitions == [0, 1, 2]
'''

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def barnabas_config():
    return {"num.partitions": 3}
"""

COROUTINES = """
import asyncio
import pytest
from barnabas.client import Producer

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.{plugin}
async def test_in_a_coroutine(barnabas_broker, barnabas_topic):
    async with Producer(barnabas_broker.bootstrap_servers) as producer:
        await (await producer.send(barnabas_topic.name, b"one"))
    assert await asyncio.to_thread(barnabas_topic.values) == [b"one"]
"""

SCOPES = """
import pytest

def test_one(barnabas_broker, barnabas_module_broker, barnabas_session_broker, record):
    record(barnabas_broker, barnabas_module_broker, barnabas_session_broker)

def test_two(barnabas_broker, barnabas_module_broker, barnabas_session_broker, record):
    record(barnabas_broker, barnabas_module_broker, barnabas_session_broker)

@pytest.fixture
def record(capsys):
    def record(*brokers):
        with capsys.disabled():
            print("\\nbrokers", *(str(id(broker)) + str(broker.data_dir) for broker in brokers))
    return record
"""


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_tk_2_a_suite_uses_the_fixtures(tmp_path: Path, options: list[str]) -> None:
    write(tmp_path, test_everything=EVERYTHING, conftest=CONFTEST)
    assert "6 passed" in run_pytest(tmp_path, *options)


def test_tk_2_a_scope_is_shared_as_far_as_it_reaches(tmp_path: Path) -> None:
    write(tmp_path, test_a=SCOPES, test_b=SCOPES)
    shared = {}
    for scope in ("function", "module", "session"):
        printed = run_pytest(tmp_path, "-o", f"barnabas_scope={scope}", "-p", "no:xdist")
        rows = [line.split()[1:] for line in printed.splitlines() if line.startswith("brokers")]
        assert len(rows) == 4
        shared[scope] = [len(set(column)) for column in zip(*rows, strict=True)]
    assert shared == {"function": [4, 2, 1], "module": [2, 2, 1], "session": [1, 2, 1]}


NAMES = """
import pytest

@pytest.mark.parametrize("value", ["c.d", "c_d", "c-d", "c/d", "\u00e4", ".", "x" * 300, "x" * 301])
def test_it(barnabas_topic, value):
    assert barnabas_topic.values() == []
    barnabas_topic.send(value)
    assert barnabas_topic.values() == [value.encode()]

def \u00fc(barnabas_topic):
    barnabas_topic.send("a name without a letter that Kafka allows")
"""


def test_tk_2_topics_that_are_called_alike_do_not_collide(tmp_path: Path) -> None:
    """Kafka refuses a name that differs from another one in `.` and `_` only."""
    write(tmp_path, test_names=NAMES)
    options = ("-o", "barnabas_scope=session", "-o", "python_functions=test_* \u00fc")
    assert "9 passed" in run_pytest(tmp_path, *options, "-p", "no:xdist")


def test_tk_2_a_scope_that_is_none_is_refused(tmp_path: Path) -> None:
    write(tmp_path, test_a=SCOPES)
    with pytest.raises(AssertionError, match="barnabas_scope: 'sesion' is not one of function, "):
        run_pytest(tmp_path, "-o", "barnabas_scope=sesion")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('{"num.partitions": 3}', "this marker takes only keyword arguments"),
        ("prodution_defaults=True", "prodution_defaults: Broker has no such argument"),
        ("brokers=0", "brokers: Broker has no such argument"),
    ],
)
def test_tk_2_a_marker_that_means_nothing_is_refused(
    tmp_path: Path, marker: str, message: str
) -> None:
    test = f"import pytest\n@pytest.mark.barnabas({marker})\ndef test_it(barnabas_broker): ...\n"
    write(tmp_path, test_marker=test)
    with pytest.raises(AssertionError, match=message):
        run_pytest(tmp_path)


def test_tk_2_a_run_without_kafka_loads_nothing_of_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        test_nothing="import sys\n"
        "def test_nothing():\n"
        "    loaded = {name for name in sys.modules if name.startswith('barnabas')}\n"
        "    parts = {'_version', 'testing', 'testing.plugin'}\n"
        "    assert loaded == {'barnabas', *(f'barnabas.{part}' for part in parts)}\n",
    )
    assert "1 passed" in run_pytest(tmp_path)


@pytest.mark.parametrize("plugin", ["asyncio", "anyio"])
def test_tk_2_tests_may_be_coroutines(plugin: str, tmp_path: Path) -> None:
    """Run by pytest-asyncio, and by anyio."""
    (tmp_path / "test_coroutine.py").write_text(COROUTINES.format(plugin=plugin), encoding="utf-8")
    assert "1 passed" in run_pytest(tmp_path)


LATE = """
def test_records(barnabas_broker):
    barnabas_broker.topic("orders").wait_for_records(1, timeout_s=0.01)

def test_topic(barnabas_broker):
    barnabas_broker.wait_for_topic("none", timeout_s=0.01)

def test_group(barnabas_broker):
    barnabas_broker.wait_for(group="billing", members=1, timeout_s=0.01)

def test_rule(barnabas_broker):
    barnabas_broker.faults.add(api="Produce", cut=True).wait(timeout_s=0.01)
"""


def test_tk_3_a_wait_that_fails_shows_the_line_of_the_test_and_none_of_ours(tmp_path: Path) -> None:
    """By the names that the documentation has; --full-trace shows all."""
    write(tmp_path, test_late=LATE)
    with pytest.raises(AssertionError) as failed:
        run_pytest(tmp_path, "-o", "barnabas_scope=session", "-p", "no:xdist")
    assert "4 failed" in str(failed.value)
    printed = str(failed.value).partition("short test summary")[0]
    assert printed.count("E       barnabas.testing.WaitTimeout: waited 0.01 s for ") == 3
    assert "E       barnabas.testing.RuleNotHit: Rule(" in printed
    for file in ("embedded", "loop_thread.py", "_base.py", "rule.py"):
        assert file not in printed
