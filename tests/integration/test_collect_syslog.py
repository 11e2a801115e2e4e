"""`barnabas collect --syslog-tcp --syslog-udp`: real senders, hostile ones, and faults."""

from __future__ import annotations

import logging
import logging.handlers
import random
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.collect_processes import Collecting, collecting_in
from tests.kit.certificates import Authority, PemFiles
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until

CONNECTIONS = 1_000
MOST_MB = 200
"""Of the process, which begins with 45."""


class Listening:
    """A collector that listens on a port of each kind."""

    def __init__(self, collecting: Collecting) -> None:
        options = ["--syslog-tcp", "127.0.0.1:0", "--syslog-udp", "127.0.0.1:0"]
        self.process = collecting.start(*options)
        assert self.process.stderr is not None
        ports = {}
        for _ in range(2):
            *_, protocol, address = self.process.stderr.readline().split()
            ports[protocol] = int(address.rpartition(":")[2])
        self.tcp, self.udp = ("127.0.0.1", ports["tcp"]), ("127.0.0.1", ports["udp"])

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate()
        assert self.process.returncode == 0, errors
        return errors

    @property
    def memory_mb(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Collecting]:
    with collecting_in(tmp_path) as running:
        yield running


def test_frames_of_both_kinds_and_datagrams(collecting: Collecting) -> None:
    listening = Listening(collecting)
    with socket.create_connection(listening.tcp) as sender:
        sender.sendall(b"<34>Nov 24 22:14:15 here su: one\n35 <165>1 2026-11-24T22:14:15Z - ")
        wait_until(lambda: len(collecting.values()) == 1)
        sender.sendall(b"- - -2no number\n<999>wrong\nno end")
    wait_until(lambda: len(collecting.values()) == 5)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"<13>of\nfour\nlines\n", listening.udp)
    wait_until(lambda: len(collecting.values()) == 6)
    assert "6 records" in listening.stop()
    records = collecting.records()
    found = []
    for record in records:
        headers = dict(record.headers)
        assert headers.pop("host") and headers.pop("syslog.from") == record.key == b"127.0.0.1"
        found.append((record.value, headers))
    assert found == [
        (b"<34>Nov 24 22:14:15 here su: one", named("auth", "crit")),
        (b"<165>1 2026-11-24T22:14:15Z - - - -", named("local4", "notice")),
        (b"2no number", {}),
        (b"<999>wrong", {}),
        (b"no end", {}),
        (b"<13>of\nfour\nlines", named("user", "notice")),
    ]


def named(facility: str, severity: str) -> dict[str, bytes]:
    return {"syslog.facility": facility.encode(), "syslog.severity": severity.encode()}


def test_what_python_sends(collecting: Collecting) -> None:
    listening = Listening(collecting)
    for kind, address in (
        (socket.SOCK_STREAM, listening.tcp),
        (socket.SOCK_DGRAM, listening.udp),
    ):
        handler = logging.handlers.SysLogHandler(address, socktype=kind)
        for text in ("one", "two ünd"):
            handler.emit(logging.LogRecord("app", logging.ERROR, "", 0, text, (), None))
        handler.close()
        wait_until(lambda: len(collecting.values()) in (2, 4))
    wait_until(lambda: len(collecting.values()) == 4)
    assert collecting.values() == [b"<11>one", "<11>two ünd".encode()] * 2


@pytest.mark.skipif(shutil.which("logger") is None, reason="needs logger (util-linux)")
def test_what_logger_sends(collecting: Collecting) -> None:
    listening = Listening(collecting)
    for form in ("--rfc5424", "--rfc3164"):
        for how in (["-T"], ["-T", "--octet-count"], ["-d"]):
            port = listening.udp[1] if how == ["-d"] else listening.tcp[1]
            to = ["-n", "127.0.0.1", "-P", str(port)]
            subprocess.run(["logger", *to, *how, form, "-p", "local3.warning", "text"], check=True)
    wait_until(lambda: len(collecting.values()) == 6)
    for record in collecting.records():
        assert record.value is not None
        assert record.value.startswith(b"<156>") and record.value.endswith(b" text")
        assert dict(record.headers)["syslog.severity"] == b"warning"
    assert sum((record.value or b"").startswith(b"<156>1 ") for record in collecting.records()) == 3


def test_hostile_bytes_harm_no_other_sender(collecting: Collecting) -> None:
    """UX-4: random bytes, counts that never come, and messages without an end."""
    listening = Listening(collecting)
    chance = random.Random(5)
    slow = [socket.create_connection(listening.tcp) for _ in range(3)]
    for sender, beginning in zip(slow, (b"<34>half", b"999999999 <1>", b"123456789"), strict=True):
        sender.sendall(beginning)
    for _ in range(20):
        with socket.create_connection(listening.tcp) as sender:
            sender.sendall(chance.randbytes(200_000))
    with socket.create_connection(listening.tcp) as sender:
        sender.sendall(b"<1>" + b"x" * 5_000_000 + b"\n<2>fine\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(50):
            sender.sendto(chance.randbytes(1_000), listening.udp)
    wait_until(lambda: b"<2>fine" in collecting.values())
    slow[0].sendall(b" done\n")
    wait_until(lambda: b"<34>half done" in collecting.values())
    for sender in slow:
        sender.close()
    wait_until(lambda: {b"<1>", b"123456789"} < set(collecting.values()))
    cut = next(each for each in collecting.records() if (each.value or b"").startswith(b"<1>xx"))
    assert len(cut.value or b"") == 65_536 and dict(cut.headers)["syslog.cut"] == b"5000003"
    listening.stop()


def test_a_thousand_connections(collecting: Collecting) -> None:
    """Half of the descriptors that the process may have; more are refused, and that is said."""
    listening = Listening(collecting)
    soft, _ = psutil.Process(listening.process.pid).rlimit(psutil.RLIMIT_NOFILE)
    admitted = min(CONNECTIONS, soft // 2)
    senders = [socket.create_connection(listening.tcp) for _ in range(admitted)]
    for number, sender in enumerate(senders):
        sender.sendall(b"<14>one of %d\n<14>two of %d\n<14>three" % (number, number))
    wait_until(lambda: len(collecting.values()) == 2 * admitted)
    values = collecting.values()
    assert all(
        values.index(b"<14>one of %d" % number) < values.index(b"<14>two of %d" % number)
        for number in range(0, admitted, 50)
    )
    with socket.create_connection(listening.tcp, PATIENCE_S) as refused:
        assert refused.recv(1) == b""
    assert listening.memory_mb < MOST_MB
    for sender in senders:
        sender.close()
    wait_until(lambda: len(collecting.values()) == 3 * admitted)
    with socket.create_connection(listening.tcp) as sender:
        sender.sendall(b"<14>there is room again\n")
    wait_until(lambda: len(collecting.values()) == 3 * admitted + 1)
    assert "1 connection was rejected" in listening.stop()


def test_sp_2_while_the_broker_is_away_tcp_waits_and_udp_drops(collecting: Collecting) -> None:
    listening = Listening(collecting)
    line = b"<14>" + b"x" * 9_995
    with (
        socket.create_connection(listening.tcp) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        tcp.sendall(b"<14>first\n")
        wait_until(lambda: collecting.values() == [b"<14>first"])
        collecting.broker.stop()
        tcp.settimeout(1.0)
        sent = unsent = 0
        try:
            while True:
                unsent = len(line) + 1
                data = memoryview(line + b"\n")
                while unsent:
                    unsent -= tcp.send(data[-unsent:])
                sent += 1
        except TimeoutError:
            pass  # it waits, and so do we
        assert listening.memory_mb < MOST_MB
        udp.sendto(b"<14>dropped", listening.udp)
        assert listening.process.stderr is not None
        wait_until(lambda: "1 message over UDP" in listening.process.stderr.readline())
        collecting.broker.start()
        tcp.settimeout(None)
        tcp.sendall((line + b"\n")[-unsent:])
        wait_until(lambda: len(collecting.values()) == 2 + sent)
    assert collecting.values()[1:] == [line] * (sent + 1)
    assert "; 1 were dropped because there was no room" in listening.stop()


def test_what_cannot_be_is_one_clear_line_ux_4(collecting: Collecting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = collecting.start("--syslog-tcp", address)
        _, errors = process.communicate()
    assert process.returncode == 1
    assert f"cannot listen for syslog on tcp {address}: " in errors.splitlines()[-1]
    process = collecting.start("--syslog-udp", "here")
    _, errors = process.communicate()
    assert process.returncode == 1 and errors.endswith(
        "--syslog-udp: 'here' is not HOST:PORT, with a port of at most 65535\n"
    )


def test_lg_2_messages_over_tls(collecting: Collecting, tmp_path: Path) -> None:
    """Of RFC 5425, and only from senders with a certificate, if that is asked for; the others are
    counted."""
    authority, stranger = Authority.make(tmp_path / "own"), Authority.make(tmp_path / "other")
    server, sender = authority.server(), authority.client("sender")
    options = ["--syslog-tls", "127.0.0.1:0", "--syslog-tls-cert", str(server.keystore)]
    process = collecting.start(*options, "--syslog-tls-client-ca", str(server.truststore))
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("listening for syslog on tls 127.0.0.1:")
    port = int(line.rpartition(":")[2])

    def connected(files: PemFiles | None) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(server.truststore))
        if files is not None:
            context.load_cert_chain(files.chain, files.key)
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    for files in (None, stranger.client("sender")):
        with pytest.raises((ssl.SSLError, ConnectionError)), connected(files) as refused:
            refused.sendall(b"8 <13>evil")
            while refused.recv(100):
                pass
            raise ConnectionError("closed without an alert")
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain:
        plain.sendall(b"<13>not TLS\n")
        assert plain.recv(100)[:1] != b"<"
    with connected(sender) as accepted:
        accepted.sendall(b"8 <13>one\n11 <14>two\nth")
        accepted.sendall(b"ree")
    wait_until(lambda: collecting.values() == [b"<13>one\n", b"<14>two\nthr", b"ee"])
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 0
    assert "3 TLS handshakes failed on the syslog port 0" in errors, errors
    assert all(dict(each.headers)["syslog.from"] == b"127.0.0.1" for each in collecting.records())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"--syslog-tls-cert": "missing.pem"}, "localhost.key: No such file or directory"),
        ({"--syslog-tls-cert": "text.pem"}, "/text.pem and "),
        ({"--syslog-tls-key": "other.key"}, "other.key: KEY_VALUES_MISMATCH"),
        ({"--syslog-tls-client-ca": "text.pem"}, "cannot use the authority of the senders"),
    ],
)
def test_ux_4_certificates_that_cannot_be_used(
    collecting: Collecting, tmp_path: Path, change: dict[str, str], problem: str
) -> None:
    authority = Authority.make(tmp_path)
    server, other = authority.server(), authority.server()
    (tmp_path / "text.pem").write_text("text")
    (tmp_path / "other.key").write_bytes(other.key.read_bytes())
    options = {"--syslog-tls-cert": str(server.chain), "--syslog-tls-key": str(server.key)}
    options |= {name: str(tmp_path / file) for name, file in change.items()}
    pairs = [each for pair in options.items() for each in pair]
    process = collecting.start("--syslog-tls", "127.0.0.1:0", *pairs)
    _, errors = process.communicate()
    assert process.returncode == 1 and problem in errors.splitlines()[-1], errors
