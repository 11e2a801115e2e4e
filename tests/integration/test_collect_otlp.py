"""LG-2: `barnabas collect --otlp-http --otlp-grpc`: OpenTelemetry's own exporters, faults, and
hostile senders."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import psutil
import pytest

from barnabas.client import NewTopic, SyncAdmin
from tests.integration.collect_processes import Collecting
from tests.kit.certificates import Authority
from tests.kit.processes.broker_process import BrokerProcess, free_port
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until

grpc = pytest.importorskip("grpc", reason="needs grpcio: pip install grpcio")
pytest.importorskip("h11", reason="needs h11: pip install h11")
exporters = pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    reason="needs opentelemetry-exporter-otlp-proto-http and -grpc",
)

from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (  # noqa: E402
    OTLPLogExporter as GrpcExporter,
)
from opentelemetry.exporter.otlp.proto.http import Compression  # noqa: E402
from opentelemetry.exporter.otlp.proto.http._log_exporter import (  # noqa: E402
    OTLPLogExporter as HttpExporter,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # noqa: E402
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider  # noqa: E402
from opentelemetry.sdk._logs.export import LogRecordExportResult  # noqa: E402

MOST_MB = 400
"""Of the process, which begins with 80: one hostile request at a time may take 250."""
PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}
EXPORT = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
ONE = {
    "resourceLogs": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeLogs": [
                {
                    "scope": {"name": "cart"},
                    "logRecords": [
                        {
                            "timeUnixNano": "1773136800123456789",
                            "severityNumber": 9,
                            "traceId": "5b8efff798038103d269b633813fc60c",
                            "body": {"stringValue": "password=hidden"},
                        }
                    ],
                }
            ],
        }
    ]
}


class Receiving:
    """A collector on fixed ports, which can be started again."""

    def __init__(self, collecting: Collecting, *options: str) -> None:
        self.http, self.grpc = free_port(), free_port()
        addresses = (f"--otlp-http=127.0.0.1:{self.http}", f"--otlp-grpc=127.0.0.1:{self.grpc}")
        self._collecting = collecting
        self._options = (*addresses, *options)
        self.start()

    def start(self) -> None:
        self.process = self._collecting.start(*self._options)
        assert self.process.stderr is not None
        seen: list[str] = []
        while sum("listening for OTLP on" in line for line in seen) < 2:
            seen.append(self.process.stderr.readline())
            assert seen[-1], seen

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate()
        assert self.process.returncode == 0 and "Traceback" not in errors, errors
        return errors

    def post(
        self, body: bytes, headers: dict[str, str], method: str = "POST", path: str = "/v1/logs"
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.http, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer, answer.read()

    def status(self, body: bytes, headers: dict[str, str], **more: str) -> int:
        return self.post(body, headers, **more)[0].status

    @property
    def memory_mb(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Collecting]:
    broker = BrokerProcess(tmp_path)
    broker.start()
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("lines", 1)])
    (tmp_path / "logs").mkdir()
    running = Collecting(broker, tmp_path / "logs")
    try:
        yield running
    finally:
        running.kill_all()
        if broker.process is not None:
            broker.stop()


def requests_in(collecting: Collecting) -> list[ExportLogsServiceRequest]:
    return [ExportLogsServiceRequest.FromString(value) for value in collecting.values()]


def bodies(collecting: Collecting) -> Counter[str]:
    return Counter(
        record.body.string_value
        for request in requests_in(collecting)
        for group in request.resource_logs
        for scope in group.scope_logs
        for record in scope.log_records
    )


def test_lg_2_both_encodings_become_one_record_a_resource(collecting: Collecting) -> None:
    receiving = Receiving(collecting, "--redact", r"password\=\S+=password=***")
    text = json.dumps(ONE).encode()
    answer, body = receiving.post(text, JSON)
    assert (answer.status, body, answer.headers["Content-Type"]) == (
        200,
        b"{}",
        JSON["Content-Type"],
    )
    answer, body = receiving.post(gzip.compress(text), JSON | {"Content-Encoding": "gzip"})
    assert (answer.status, body) == (200, b"{}")
    (first, second) = collecting.records()
    assert first.value == second.value and first.value is not None
    two = first.value * 2  # requests can be joined like this
    answer, body = receiving.post(two, PROTOBUF)
    assert (answer.status, body) == (200, ExportLogsServiceResponse().SerializeToString())
    with grpc.insecure_channel(f"127.0.0.1:{receiving.grpc}") as channel:
        for compression in (None, grpc.Compression.Gzip):
            assert channel.unary_unary(EXPORT)(two, compression=compression) == b""
    records = collecting.records()
    assert [record.value for record in records] == [first.value] * 8
    for record in records:
        headers = dict(record.headers)
        assert headers.pop("host")
        assert headers == {"otlp.from": b"127.0.0.1", "otlp.encoding": b"otlp_proto"}
        assert record.key == records[0].key
    (group,) = requests_in(collecting)[0].resource_logs
    assert group.resource.attributes[0].value.string_value == "shop"
    (record,) = group.scope_logs[0].log_records
    assert record.body.string_value == "password=***"
    assert record.trace_id.hex() == "5b8efff798038103d269b633813fc60c"
    assert "8 records" in receiving.stop()


def test_lg_2_what_is_refused_says_why(collecting: Collecting) -> None:
    receiving = Receiving(collecting)
    text = json.dumps(ONE).encode()
    assert receiving.status(b"\x07", PROTOBUF) == 400
    assert receiving.status(b"[1]", JSON) == 400
    assert receiving.status(b'{"resourceLogs":' + b"[" * 100_000, JSON) == 400
    assert receiving.status(text, JSON | {"Content-Encoding": "gzip"}) == 400
    assert receiving.status(text, JSON | {"X-Large": "x" * 20_000}) == 413
    assert receiving.status(gzip.compress(text)[:-9], JSON | {"Content-Encoding": "gzip"}) == 400
    assert receiving.status(text, {"Content-Type": "text/plain"}) == 415
    assert receiving.status(text, JSON | {"Content-Encoding": "br"}) == 415
    assert receiving.status(text, JSON, path="/v1/traces") == 404
    assert receiving.status(b"", JSON, method="GET") == 405
    assert receiving.status(b"x" * (8 << 20) + b"x", PROTOBUF) == 413
    answer, body = receiving.post(b"{", JSON)
    assert (
        answer.status == 400 and "not a valid OTLP request in JSON" in json.loads(body)["message"]
    )
    with grpc.insecure_channel(f"127.0.0.1:{receiving.grpc}") as channel:
        call = channel.unary_unary(EXPORT)
        for message, code in (
            (b"\x07", grpc.StatusCode.INVALID_ARGUMENT),
            (b"x" * (8 << 20) + b"x", grpc.StatusCode.RESOURCE_EXHAUSTED),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                call(message)
            assert caught.value.code() is code
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/opentelemetry.Other/Export")(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert collecting.values() == []
    receiving.stop()


def test_lg_2_without_a_broker_senders_are_told_to_try_again(collecting: Collecting) -> None:
    """And the same request, sent again, is in the topic once."""
    receiving = Receiving(collecting)
    body = json.dumps(ONE).encode()
    assert receiving.status(body, JSON) == 200
    (message,) = collecting.values()
    collecting.broker.kill()
    answer, _ = receiving.post(body, JSON)
    assert answer.status == 503 and answer.headers["Retry-After"] == "1"
    with grpc.insecure_channel(f"127.0.0.1:{receiving.grpc}") as channel:
        export = channel.unary_unary(EXPORT)
        with pytest.raises(grpc.RpcError) as caught:
            export(message)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        collecting.broker.start()
        wait_until(lambda: receiving.status(body, JSON) == 200)
        assert export(message) == b""
    assert collecting.values() == [message] * 3
    receiving.stop()


class Sender(threading.Thread):
    """Sends log records with one of OpenTelemetry's exporters, and each batch until its storage is
    confirmed."""

    def __init__(self, make: Callable[[], Any], name: str, most: int) -> None:
        super().__init__()
        self.confirmed: Counter[str] = Counter()
        self.again: set[str] = set()
        self._make = make
        self._name = name
        self._most = most

    def run(self) -> None:
        exporter = self._make()
        for number in range(0, self._most, 10):
            texts = [f"{self._name} {each}" for each in range(number, number + 10)]
            batch = _batch(texts)
            while exporter.export(batch) is not LogRecordExportResult.SUCCESS:
                self.again |= set(texts)
            self.confirmed.update(texts)
        exporter.shutdown()


def _batch(texts: list[str]) -> list[Any]:
    """The records as the SDK gives them to an exporter."""
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    kept = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(kept))
    logger = provider.get_logger("tests")
    for text in texts:
        logger.emit(
            LogRecord(timestamp=time.time_ns(), severity_number=SeverityNumber.INFO, body=text)
        )
    return list(kept.get_finished_logs())


@pytest.mark.slow
def test_lg_2_nothing_is_lost_whatever_is_killed(
    collecting: Collecting, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker is killed and the collector stopped and killed while real exporters send."""
    caplog.set_level(logging.CRITICAL)  # the exporters report each attempt
    receiving = Receiving(collecting)
    address = f"http://127.0.0.1:{receiving.http}/v1/logs"
    senders = [
        Sender(lambda: HttpExporter(address, compression=Compression.Gzip), "http", 1_000),
        Sender(lambda: GrpcExporter(f"127.0.0.1:{receiving.grpc}", insecure=True), "grpc", 1_000),
    ]
    for sender in senders:
        sender.start()

    def reached(share: float) -> bool:
        return sum(sender.confirmed.total() for sender in senders) >= 2_000 * share

    wait_until(lambda: reached(0.1))
    collecting.broker.kill()
    collecting.broker.start()
    wait_until(lambda: reached(0.3))
    receiving.stop()
    receiving.start()
    wait_until(lambda: reached(0.5))
    receiving.process.kill()
    receiving.process.communicate()
    receiving.start()
    wait_until(lambda: reached(0.7))
    collecting.broker.kill()
    receiving.stop()
    collecting.broker.start()
    receiving.start()
    for sender in senders:
        sender.join()
    found = bodies(collecting)
    for sender in senders:
        assert sender.confirmed.total() == 1_000 and not set(sender.confirmed) - set(found)
    # An exporter repeats a request by itself: these are beyond what `again` knows.
    repeated = {text for text, count in found.items() if count > 1}
    print(f"{len(repeated)} of 2,000 are in the topic more than once")
    assert len(repeated) <= 5 * 2 * 10, "at most the batch of each sender at each fault"
    receiving.stop()


@pytest.mark.slow
def test_ux_4_hostile_senders_harm_nobody(collecting: Collecting) -> None:
    receiving = Receiving(collecting)
    body = json.dumps(ONE).encode()
    head = b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"

    def connected() -> socket.socket:
        return socket.create_connection(("127.0.0.1", receiving.http), PATIENCE_S)

    def answer_to(*parts: bytes) -> bytes:
        with connected() as sender:
            with contextlib.suppress(ConnectionError):
                for part in parts:
                    sender.sendall(part)
            found = b""
            with contextlib.suppress(ConnectionError):
                while read := sender.recv(65_536):
                    found += read
            return found

    slow = [connected() for _ in range(100)]
    for number, sender in enumerate(slow):
        sender.sendall((head + b"Content-Length: 1000\r\n\r\nx")[: 1 + number * 2])
    bomb = gzip.compress(b"\0" * (1 << 30), 1)
    headers = PROTOBUF | {"Content-Encoding": "gzip"}
    assert receiving.status(bomb, headers) == 413
    many = b"\x0a\x00" * (4 << 20)  # four million resources without a log record
    assert receiving.status(gzip.compress(many), headers) == 413
    assert answer_to(head + b"Content-Length: 100000000\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    endless = answer_to(head + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 1_000)
    assert endless.startswith(b"HTTP/1.1 413 ") or not endless
    assert answer_to(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 404")
    assert answer_to(b"\x16\x03\x01\x02\x00\x01\x00" * 100).startswith(b"HTTP/1.1 400 ")
    assert answer_to(head + b"X: " + b"x" * 100_000).startswith(b"HTTP/1.1 4")
    with grpc.insecure_channel(f"127.0.0.1:{receiving.grpc}") as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(EXPORT)(b"\0" * (100 << 20), compression=grpc.Compression.Gzip)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    with socket.create_connection(("127.0.0.1", receiving.grpc), PATIENCE_S) as sender:
        sender.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    crowd = [connected() for _ in range(300)]
    for sender in crowd:
        sender.close()
    wait_until(lambda: _is_taken(receiving, body))
    assert receiving.memory_mb < MOST_MB
    # Each has ten seconds for its head, and thirty for its body.
    for sender in slow[:50]:
        found = b""
        with contextlib.suppress(ConnectionError):
            while read := sender.recv(1_000):
                found += read
        assert found.startswith(b"HTTP/1.1 408 ")
    for sender in slow:
        sender.close()
    assert receiving.status(body, JSON) == 200
    receiving.stop()


def _is_taken(receiving: Receiving, body: bytes) -> bool:
    try:
        return receiving.status(body, JSON) == 200
    except (ConnectionError, TimeoutError):
        return False


def test_lg_2_over_tls_with_certificates_of_senders(
    collecting: Collecting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests prefers it to its argument
        monkeypatch.delenv(name, raising=False)
    authority = Authority.make(tmp_path / "own")
    server, client = authority.server(), authority.client("sender")
    files = [
        "--otlp-tls-cert",
        str(server.keystore),
        "--otlp-tls-client-ca",
        str(server.truststore),
    ]
    receiving = Receiving(collecting, *files)
    options = {"certificate_file": str(server.truststore), "timeout": PATIENCE_S}
    own = {"client_certificate_file": str(client.chain), "client_key_file": str(client.key)}
    address = f"https://127.0.0.1:{receiving.http}/v1/logs"
    assert HttpExporter(address, **options, **own).export(_batch(["by http"])).name == "SUCCESS"
    credentials = grpc.ssl_channel_credentials(
        server.truststore.read_bytes(), client.key.read_bytes(), client.chain.read_bytes()
    )
    exporter = GrpcExporter(f"127.0.0.1:{receiving.grpc}", credentials=credentials)
    assert exporter.export(_batch(["by grpc"])).name == "SUCCESS"
    exporter.shutdown()
    assert bodies(collecting) == Counter({"by http": 1, "by grpc": 1})
    with pytest.raises(OSError):
        import requests

        requests.post(address, b"", verify=str(server.truststore), timeout=PATIENCE_S)
    with (
        grpc.secure_channel(
            f"127.0.0.1:{receiving.grpc}",
            grpc.ssl_channel_credentials(server.truststore.read_bytes()),
        ) as channel,
        pytest.raises(grpc.RpcError),
    ):
        channel.unary_unary(EXPORT)(b"", timeout=PATIENCE_S)
    assert "on the OTLP port" in receiving.stop()


def test_ux_4_an_address_in_use(collecting: Collecting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for option in ("--otlp-http", "--otlp-grpc"):
            process: subprocess.Popen[str] = collecting.start(option, address)
            _, errors = process.communicate()
            assert process.returncode == 1 and "cannot listen for OTLP over" in errors, errors
