"""Clients that their program does not close: what they accepted is sent, or counted (PR-8)."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import barnabas
from barnabas.client import SyncAdmin, SyncConsumer, SyncProducer
from tests.kit.client_transactions import name
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

COUNT = 100

SYNC = """
import sys
from barnabas.client import SyncProducer
producer = SyncProducer(sys.argv[1], linger_ms=60_000)
for number in range(100):
    producer.send(sys.argv[2], b"%d" % number)
"""
ASYNC = """
import asyncio, sys
from barnabas.client import Producer
async def main():
    producer = Producer(sys.argv[1], linger_ms=60_000)
    await producer.start()
    for number in range(100):
        await producer.send(sys.argv[2], b"%d" % number)
"""


@pytest.fixture
def topic() -> str:
    return name("sent")


def run(servers: str, topic: str, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-c", dedent(program), servers, topic]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "raise SystemExit(3)",
        "del producer",
        "import threading; threading.Timer(0.1, producer.send, (sys.argv[2], b'late')).start()",
    ],
    ids=["end", "exit", "dropped", "thread"],
)
def test_pr_8_a_program_that_ends_has_sent_what_was_accepted(
    broker: barnabas.Broker, topic: str, ending: str
) -> None:
    done = run(broker.bootstrap_servers, topic, f"{SYNC}\n{ending}")
    assert (done.returncode, done.stdout, done.stderr) == (3 if "3" in ending else 0, "", "")
    assert len(broker.topic(topic).records()) == COUNT + ("late" in ending)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pr_8_a_child_process_that_ends_has_sent_what_was_accepted(
    broker: barnabas.Broker, topic: str, tmp_path: Path, method: str
) -> None:
    """A forked child ends without atexit; one that closed its client has nothing left to do."""
    program = tmp_path / "parent.py"
    program.write_text(
        f"""
import multiprocessing, sys, threading
from barnabas.client import SyncProducer

def child():
    with SyncProducer({broker.bootstrap_servers!r}) as closed:
        closed.send({topic!r}, b"closed")
    producer = SyncProducer({broker.bootstrap_servers!r}, linger_ms=60_000)
    for number in range({COUNT}):
        producer.send({topic!r}, b"%d" % number)
    threading.Timer(0.1, producer.send, ({topic!r}, b"late")).start()

if __name__ == "__main__":
    process = multiprocessing.get_context({method!r}).Process(target=child)
    process.start()
    process.join(60)
    sys.exit(process.exitcode)
"""
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(broker.topic(topic).records()) == COUNT + 2


def test_a_client_that_is_open_at_exit_is_named(broker: barnabas.Broker, topic: str) -> None:
    done = run(broker.bootstrap_servers, topic, SYNC, "-W", "default::ResourceWarning")
    assert "ResourceWarning: unclosed SyncProducer('127.0.0.1:" in done.stderr


def test_pr_8_names_are_looked_up_at_exit_without_a_thread(
    broker: barnabas.Broker, topic: str
) -> None:
    """asyncio's own loop has no thread for that at the interpreter's end."""
    without = f"import sys; sys.modules['uvloop'] = None\n{SYNC}"
    done = run(broker.bootstrap_servers.replace("127.0.0.1", "localhost"), topic, without)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(broker.topic(topic).records()) == COUNT


def test_pr_8_callbacks_are_called_at_exit(broker: barnabas.Broker, topic: str) -> None:
    program = """
        import sys
        from barnabas.client import SyncProducer
        producer = SyncProducer(sys.argv[1], linger_ms=60_000)
        producer.send(sys.argv[2], b"x", on_delivery=lambda sent: print(sent.result().offset))
    """
    assert run(broker.bootstrap_servers, topic, program).stdout == "0\n"


@pytest.mark.parametrize(
    "program",
    [
        SYNC.replace("60_000", "0, request_timeout_ms=300, delivery_timeout_ms=600"),
        f"{ASYNC.replace('60_000', '0, request_timeout_ms=300, delivery_timeout_ms=600')}"
        "asyncio.run(main())",
    ],
    ids=["sync", "async"],
)
def test_pr_8_what_cannot_be_sent_at_exit_is_counted(
    broker: barnabas.Broker, topic: str, program: str
) -> None:
    with broker.faults.add(api="Produce", drop=True):
        done = run(broker.bootstrap_servers, topic, program)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("barnabas: ")]
    assert line.startswith(
        f"barnabas: {COUNT} records were not acknowledged when the program dropped"
    )
    assert done.returncode == 0


def test_pr_8_a_loop_that_ends_has_sent_what_was_accepted(
    broker: barnabas.Broker, topic: str
) -> None:
    program = f"{ASYNC}\nasyncio.run(main())"
    done = run(broker.bootstrap_servers, topic, program, "-W", "default::ResourceWarning")
    assert "ResourceWarning: unclosed Producer(" in done.stderr
    assert "not acknowledged" not in done.stderr
    assert len(broker.topic(topic).records()) == COUNT


def test_pr_8_a_loop_that_is_only_closed_loses_what_is_counted(
    broker: barnabas.Broker, topic: str
) -> None:
    program = f"{ASYNC}\nloop = asyncio.new_event_loop(); loop.run_until_complete(main())"
    done = run(broker.bootstrap_servers, topic, f"{program}; loop.close()")
    assert f"barnabas: {COUNT} records were not acknowledged" in done.stderr


def test_a_block_that_is_cancelled_with_its_loop_is_flushed(
    broker: barnabas.Broker, topic: str
) -> None:
    """asyncio.run cancels the producer's own tasks together with the one that closes it."""
    program = """
        import asyncio, sys
        from barnabas.client import Producer
        async def work(is_sent):
            async with Producer(sys.argv[1], linger_ms=60_000) as producer:
                for number in range(100):
                    await producer.send(sys.argv[2], b"x")
                is_sent.set()
                await asyncio.sleep(3600)
        async def main():
            is_sent = asyncio.Event()
            working = asyncio.create_task(work(is_sent))
            await is_sent.wait()
        asyncio.run(main())
    """
    done = run(broker.bootstrap_servers, topic, program, "-W", "default::ResourceWarning")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(broker.topic(topic).records()) == COUNT


def joined(servers: str) -> SyncConsumer:
    consumer = SyncConsumer(servers, group_id="readers")
    consumer.subscribe(["read"])
    consumer.poll(0.1)
    return consumer


def called_back(servers: str) -> SyncProducer:
    producer = SyncProducer(servers)
    producer.send("read", b"x", on_delivery=lambda sent: None).result()
    return producer


@pytest.mark.parametrize("make", [called_back, SyncAdmin, joined])
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
def test_a_dropped_client_takes_its_threads_and_descriptors_with_it(
    broker: barnabas.Broker, make: Callable[[str], Any]
) -> None:
    broker.topic("read").send("first")

    def held() -> tuple[int, int]:
        ours = [thread for thread in threading.enumerate() if thread.name.startswith("barnabas-")]
        return len(ours), len(os.listdir("/proc/self/fd"))

    make(broker.bootstrap_servers).close()
    before = held()
    client = make(broker.bootstrap_servers)
    assert held() > before
    with pytest.warns(ResourceWarning, match=f"unclosed .*{type(client).__name__}"):
        del client
        gc.collect()
    wait_until(lambda: held() <= before)
