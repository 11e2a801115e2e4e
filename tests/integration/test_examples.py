"""Every program in `examples/` runs to its end and prints what it promises."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

import barnabas
from tests.kit.foreign import CHECKOUT, require_java
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.pytest_process import run_pytest

EXAMPLES = CHECKOUT / "examples"


@pytest.mark.parametrize("name", ["embedded_broker.py", "any_client.py"])
def test_a_broker_inside_a_program(name: str, tmp_path: Path) -> None:
    printed = run(EXAMPLES / name, tmp_path)
    for greeting in ("hello", "bonjour", "ciao"):
        assert printed.count(greeting) == 1


def test_tk_4_an_application_is_tested_with_faults(tmp_path: Path) -> None:
    printed = run(EXAMPLES / "testing_faults.py", tmp_path)
    assert "refused three times, placed: ['tea']" in printed
    assert "in the topic, each once: ['tea', 'coffee']" in printed


@pytest.mark.parametrize(
    "name",
    [
        "testing_with_fixtures.py",
        "testing_confluent_kafka.py",
        "testing_aiokafka.py",
        "testing_kafka_python.py",
        "testing_faststream.py",
        "testing_web_service.py",
    ],
)
def test_tk_2_a_suite_of_tests(name: str, tmp_path: Path) -> None:
    assert " passed" in run_pytest(tmp_path, "--rootdir", str(tmp_path), str(EXAMPLES / name))


def test_pr_7_a_pipeline_that_dies_bills_each_order_once(tmp_path: Path) -> None:
    printed = run(EXAMPLES / "pipeline.py", tmp_path)
    assert printed.splitlines() == [
        "the first run was killed at order 7",
        f"billed, each once: {[number for number in range(12) if number != 3]}",
        "rejected: [b'3']",
    ]


def test_a_web_service_ends_cleanly(broker: barnabas.Broker, tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLES / "web_service.py", "--servers", broker.bootstrap_servers]
    service = subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True)
    try:
        assert service.stdout is not None
        address = service.stdout.readline().split()[-1]
        order = json.dumps({"item": "tea", "count": 2}).encode()
        with urlopen(f"{address}/orders", order, timeout=60) as answer:
            assert answer.status == 201
        service.send_signal(signal.SIGTERM)
        printed, problems = service.communicate(timeout=60)
    finally:
        service.kill()
        service.wait()
    assert (service.returncode, printed, problems) == (0, "stopped\n", "")
    assert json.loads(broker.topic("orders").values()[-1] or b"") == {"item": "tea", "count": 2}


def test_a_batch_script_says_by_its_exit_code_how_it_went(
    broker: barnabas.Broker, tmp_path: Path
) -> None:
    assert run(EXAMPLES / "batch.py", tmp_path) == "5 of 5 readings are clean\n"
    readings, clean = broker.topic("cron-readings"), broker.topic("cron-clean")

    def batch(*arguments: str) -> tuple[int, str, str]:
        command = [sys.executable, EXAMPLES / "batch.py", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    ours = ("--servers", broker.bootstrap_servers, "--source", readings.name)
    ours = (*ours, "--target", clean.name)
    readings.send_many(['{"celsius": 0}', '{"celsius": 100}'])
    assert batch(*ours) == (0, "2 of 2 readings are clean\n", "")
    assert batch(*ours) == (0, "0 of 0 readings are clean\n", "")
    assert [json.loads(value or b"")["kelvin"] for value in clean.values()] == [273.15, 373.15]
    readings.send("hot")
    code, printed, problems = batch(*ours)
    assert (code, printed) == (1, "0 of 1 readings are clean\n")
    assert problems.startswith("cron-readings-0 at offset 2: Expecting value")
    assert batch("--sauce", "none")[0] == 2
    for wrong in (("--servers", f"127.0.0.1:{free_port()}"), (*ours[:2], "--source", "nowhere")):
        code, printed, problems = batch(*wrong)
        assert (code, printed) == (3, "") and len(problems.splitlines()) == 1, problems


def test_the_picture_of_a_failover(tmp_path: Path) -> None:
    printed = run(EXAMPLES / "failover_picture.py", tmp_path, "failover.svg")
    assert printed.startswith("failover.svg: 3 partitions, ")
    drawn = (tmp_path / "failover.svg").read_text(encoding="utf-8").replace("&#160;", " ")
    assert "leader broker 2 -&gt; broker" in drawn and "broker 2 is not registered" in drawn
    lags_s = re.findall(r"([\d.]+)</text><text[^>]*>gone", drawn)
    assert len(lags_s) == 3 and all(float(each) >= 2 for each in lags_s)


@pytest.mark.slow
def test_a_stream_goes_on_where_it_ended(tmp_path: Path) -> None:
    """SP-4"""
    require_java()
    printed = run(EXAMPLES / "spark_stream.py", tmp_path)
    for number in range(5):
        assert printed.count(f"number {number}") == 1


@pytest.mark.parametrize("name", ["textbook.py", "textbook_confluent.py"])
def test_ux_7_the_textbooks_program(name: str, tmp_path: Path) -> None:
    """UX-7"""
    printed = run(EXAMPLES / name, tmp_path)
    assert read_in_order(printed) == {f"HelloWorld{number}" for number in range(100)}
    assert printed.endswith("committed in all: 100\n")


def test_ux_7_the_textbooks_program_with_one_partition(tmp_path: Path) -> None:
    printed = run(EXAMPLES / "textbook.py", tmp_path, "--assign")
    sent = printed.count("RecordMetadata(topic='firstTopic', partition=1,")
    assert sent in (33, 34)  # of a hundred in turn on three partitions
    assert len(read_in_order(printed)) == sent
    assert printed.endswith(f"committed in all: {sent}\n")
    assert "partition 0," not in printed


def read_in_order(printed: str) -> set[str]:
    """The values that the program has read; offsets and values of each partition must ascend."""
    last: dict[str, tuple[int, int]] = {}
    values = set()
    for partition, offset, value in re.findall(
        r"^partition (\d), offset (\d+): HelloWorld(\d+)$", printed, re.MULTILINE
    ):
        place = (int(offset), int(value))
        before = last.get(partition, (-1, -1))
        assert place[0] == before[0] + 1 and place[1] > before[1], (place, before)
        last[partition] = place
        values.add(f"HelloWorld{value}")
    return values


@pytest.mark.slow
def test_who_believes_what_of_the_high_watermark(tmp_path: Path) -> None:
    """RE-6: LEO and HW of the brokers 1, 2 and 3, and the ISR, step by step."""
    printed = run(EXAMPLES / "high_watermark.py", tmp_path)
    numbers = re.findall(r"^  [123] +(\d|-) +(\d|-)(?:  |$)", printed, re.MULTILINE)
    steps = [numbers[i : i + 3] for i in range(0, len(numbers), 3)]
    zero, written, visible = ("0", "0"), ("1", "0"), ("1", "1")
    assert steps[:5] == [
        [zero, zero, zero],
        [written, zero, zero],
        [written, written, zero],
        [visible, written, written],
        [visible, visible, visible],
    ]
    level, stopped = ("2", "2"), ("-", "-")
    assert steps[5:] == [[visible, visible, stopped], [level, level, stopped], [level] * 3]
    every, two = "1, 2, 3", "1, 2"
    isr = re.findall(r"^  ISR: (.*)$", printed, re.MULTILINE)
    assert isr == [every] * 5 + [two] * 2 + [every]
    assert max(map(len, printed.splitlines())) <= 80


def test_every_example_is_run_and_listed() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    tests = Path(__file__).read_text(encoding="utf-8")
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in programs if name not in tests or name not in listed] == []


def run(program: Path, directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, program, *arguments],
        cwd=directory,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
