"""ZS-1: the tests of kazoo itself, with our ZooKeeper server and with Java's."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from tests.conformance import kazoo_suite
from tests.kit import foreign
from tests.kit.processes.broker_process import COMMAND, free_port

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

LEAST_PASSED = 200
MOST_S = 900.0


def test_zs_1_kazoos_own_tests_pass() -> None:
    assert passed_by([str(COMMAND), "zookeeper", "start"]) >= LEAST_PASSED


@pytest.mark.soak
def test_zs_1_they_pass_with_a_real_server_too() -> None:
    """So what is left out is nothing that a real server, alone, would do."""
    java = [
        str(foreign.require_java()),
        "-cp",
        foreign.require_zookeeper(),
        "-Dfile.encoding=UTF-8",
    ]
    java.append("-Djava.security.auth.login.config={jaas}")
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    # This test gives a server five seconds to start again, and a JVM needs about as long.
    too_fast = "not test_request_queuing_session_expired"
    assert passed_by([*java, main], "-k", too_fast) >= LEAST_PASSED


def passed_by(command: list[str], *selection: str) -> int:
    """Runs the suite with the servers that this command starts; none of its tests may fail."""
    python = foreign.require_kazoo_suite()
    environment = {
        **os.environ,
        kazoo_suite.START: json.dumps(command),
        "PYTHONPATH": str(foreign.CHECKOUT),
        "ZOOKEEPER_CLUSTER_SIZE": "1",
        "ZOOKEEPER_VERSION": "3.8.0",
        "ZOOKEEPER_PORT_OFFSET": str(free_port()),
    }
    options = ["-p", kazoo_suite.__name__, "-p", "no:cacheprovider", "-q", "--timeout", "120"]
    done = subprocess.run(
        [str(python), "-m", "pytest", *options, "-rfE", *selection, "--pyargs", "kazoo.tests"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=python.parent,
        timeout=MOST_S,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and passed, done.stdout
    return int(passed[1])
