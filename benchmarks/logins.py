"""Many clients that log in at once, by SCRAM over TLS, and what another client feels of it.

    python -m benchmarks.logins [--connections N] [--rounds N] [--kafka] [--json FILE]

Another process opens the connections, fifty at a time: each shakes hands, logs in as the same user
(4,096 iterations) and stays. Meanwhile a client that came before sends a record of 100 bytes every
millisecond or when the one before is acknowledged, and its latencies are taken; "quiet" is the same
client before. With `--kafka` a real Kafka 3.9.1 is measured in turn with ours, with the same
certificate. The median of the rounds counts, of both processes on the machine's cores.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from barnabas.client import SyncAdmin, UserScramCredentialUpsertion
from barnabas.protocol.api import PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.scram import ScramClient
from benchmarks import brokers, client_work
from benchmarks.accounting import cpu_seconds
from benchmarks.figures import Figure, parser_of, show
from tests.kit.broker.tls_broker import TlsRawClient
from tests.kit.certificates import Authority, PemFiles
from tests.kit.processes.broker_process import broker_process, free_port
from tests.kit.raw_client import RawClient, batch

CONNECTIONS, ROUNDS = 1000, 3
GOAL_SECONDS, GOAL_P99_MS = 20.0, 20.0
MECHANISM, USER, PASSWORD = "SCRAM-SHA-256", "alice", "a password of alice"
TOPIC = "bystander"
_AT_ONCE = 50
_QUIET_SECONDS = 2.0
_SPAWN = multiprocessing.get_context("spawn")
_SASL = {
    "sasl.enabled.mechanisms": MECHANISM,
    f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}


class Measured(NamedTuple):
    """A broker by its listeners without and with a log-in."""

    name: str
    open_servers: str
    servers: str
    pid: int


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--kafka", action="store_true", help="a real Kafka 3.9.1 as well")
    given = parser.parse_args()
    figures = measure(given.connections, given.rounds, with_kafka=given.kafka)
    show(f"{given.connections} log-ins by SCRAM over TLS at once", figures, given.json)


def measure(connections: int, rounds: int, *, with_kafka: bool = False) -> list[Figure]:
    found: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="barnabas-logins-") as name:
        directory = Path(name)
        files = Authority.make(directory / "ca").server()
        with contextlib.ExitStack() as stack:
            measured = [stack.enter_context(_barnabas(directory / "barnabas", files))]
            if with_kafka:
                measured.append(stack.enter_context(_kafka(directory / "kafka", files)))
            for broker in measured:
                _prepare(broker)
            for _ in range(rounds):
                for broker in measured:
                    for (what, unit), value in _round(broker, files, connections).items():
                        found.setdefault((broker.name, what, unit), []).append(value)
    goals = {"all are in": GOAL_SECONDS, "p99 meanwhile": GOAL_P99_MS}
    return [
        Figure(f"{broker}: {what}", unit, statistics.median(values), goals.get(what))
        for (broker, what, unit), values in found.items()
    ]


@contextlib.contextmanager
def _barnabas(directory: Path, files: PemFiles) -> Iterator[Measured]:
    directory.mkdir(parents=True)
    open_servers, servers = (f"127.0.0.1:{free_port()}" for _ in range(2))
    settings = {**files.settings(), **_SASL}
    settings["listeners"] = f"PLAINTEXT://{open_servers},SASL_SSL://{servers}"
    with broker_process(directory, *(f"{key}={text}" for key, text in settings.items())) as broker:
        assert broker.process is not None
        yield Measured("Barnabas", open_servers, servers, broker.process.pid)


@contextlib.contextmanager
def _kafka(directory: Path, files: PemFiles) -> Iterator[Measured]:
    with brokers.kafka(directory, {**files.settings(), **_SASL}, "SASL_SSL") as running:
        yield Measured("Kafka", running.servers, running.tls_servers, running.pid)


def _prepare(broker: Measured) -> None:
    client_work.create_topic(broker.open_servers, TOPIC, 1)
    with SyncAdmin(broker.open_servers) as admin:
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(USER, PASSWORD, MECHANISM, 4096)]
        )


def _round(broker: Measured, files: PemFiles, count: int) -> dict[tuple[str, str], float]:
    truststore = str(files.truststore)
    with RawClient(broker.open_servers) as bystander, _SPAWN.Pool(1) as pool:
        pool.apply(open_all, (broker.servers, truststore, 1))  # started, before the clock
        quiet_ends_at = time.perf_counter() + _QUIET_SECONDS
        quiet = _latencies_ms(bystander, lambda: time.perf_counter() > quiet_ends_at)
        used = cpu_seconds(broker.pid)
        opening = pool.apply_async(open_all, (broker.servers, truststore, count))
        meanwhile = _latencies_ms(bystander, opening.ready)
        took = opening.get()
        used = cpu_seconds(broker.pid) - used
    return {
        ("all are in", "s"): took,
        ("a log-in, with the bystander", "CPU ms"): used / count * 1000,
        ("p99 meanwhile", "ms"): _p99(meanwhile),
        ("p99 quiet", "ms"): _p99(quiet),
    }


def _latencies_ms(client: RawClient, is_over: Callable[[], bool]) -> list[float]:
    """Of one record after the other, a millisecond apart."""
    data = PartitionProduceData(index=0, records=batch(client_work.value_of(100)))
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    latencies = []
    while not is_over():
        began = time.perf_counter()
        response = client.call(PRODUCE, 9, request)
        latencies.append((time.perf_counter() - began) * 1000)
        assert response.responses[0].partition_responses[0].error_code == 0, response
        time.sleep(0.001)
    return latencies


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def open_all(servers: str, truststore: str, count: int) -> float:
    """Open them all and keep them until the last is in; the seconds that took."""
    context = ssl.create_default_context(cafile=truststore)
    began = time.perf_counter()
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(_AT_ONCE) as threads:
        for client in threads.map(lambda _: _logged_in(servers, context), range(count)):
            stack.enter_context(client)
        return time.perf_counter() - began


def _logged_in(servers: str, context: ssl.SSLContext) -> RawClient:
    client = TlsRawClient(servers, context)
    exchange = ScramClient(MECHANISM, USER, PASSWORD)
    hello = client.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=MECHANISM))
    assert hello.error_code == 0, hello
    message: bytes | None = exchange.first()
    while message is not None:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = client.call(SASL_AUTHENTICATE, 2, request)
        assert answer.error_code == 0, answer.error_message
        message = exchange.respond(bytes(answer.auth_bytes))
    return client


if __name__ == "__main__":
    main()
