"""Frames that no client would send, against listeners where clients log in.

They come in plain text, inside TLS, and in plain text to the listener with TLS.

None gets in, none makes the broker fail, none is shown in its log, and a client that has logged in
is served meanwhile. The seed is printed; `BARNABAS_SEED` gives another, `BARNABAS_FRAMES` more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import ssl
import struct
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import SyncProducer
from barnabas.protocol.api import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from barnabas.protocol.frame import encode_request
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.kit.broker.secured import MECHANISMS, PLAIN_LINE, SECRET, USER, options, secured_broker
from tests.kit.certificates import Authority
from tests.kit.signed_tokens import claims, signer, unsigned

pytestmark = pytest.mark.slow

FRAMES = int(os.environ.get("BARNABAS_FRAMES", "20000"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
CONNECTIONS = 16
HOST = "127.0.0.1"
WAYS = ("plain", "plain", "tls", "tls", "plain to tls")
LISTENERS = {
    "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0,TLS://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT,TLS:SASL_SSL",
    "listener.name.tls.plain.sasl.jaas.config": PLAIN_LINE,
}
PATIENCE_S = 60


class Intruder:
    """Knows the protocol, a user's name and a password that is nearly right."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._forged = [unsigned(claims()), unsigned(claims(), alg="HS256"), "a.b.c"]
        self._forged += [signer("k2").sign(claims()), signer().sign(claims(aud="x"))]

    def burst(self) -> list[bytes]:
        """Frames without their lengths, for one connection."""
        rng = self.random
        frames = []
        if rng.random() < 0.4:
            frames.append(request(API_VERSIONS, rng.randint(0, 2), ApiVersionsRequest()))
        version = rng.choice([0, 1, 1, 1])
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2])):
            mechanism = rng.choice([*MECHANISMS, *MECHANISMS, "GSSAPI", "", "x" * 200])
            hello = SaslHandshakeRequest(mechanism=mechanism)
            frames.append(request(SASL_HANDSHAKE, version, hello))
        for _ in range(rng.randint(1, 4)):
            message = self.message()
            if version:
                sent = SaslAuthenticateRequest(auth_bytes=message)
                message = request(SASL_AUTHENTICATE, rng.randint(0, 2), sent)
            frames.append(message)
        if rng.random() < 0.3:
            api = rng.choice(list(APIS.values()))
            frames.append(struct.pack(">hhih", api.key, api.max_version, 1, -1) + bytes(30))
        return [self.damaged(frame) if rng.random() < 0.25 else frame for frame in frames]

    def message(self) -> bytes:
        rng = self.random
        choice: Callable[[], bytes] = rng.choice(
            [self._plain, self._scram_first, self._scram_final, self._token, self._noise]
        )
        message = choice()
        return self.damaged(message) if rng.random() < 0.3 else message

    def damaged(self, data: bytes) -> bytes:
        rng = self.random
        at = rng.randint(0, len(data))
        if rng.random() < 0.3:
            return data[:at]
        if rng.random() < 0.5:
            return data[:at] + rng.randbytes(rng.randint(1, 5)) + data[at:]
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]

    def _plain(self) -> bytes:
        return f"\0{USER}\0{SECRET}x".encode()

    def _scram_first(self) -> bytes:
        extension = self.random.choice(["", ",tokenauth=true", ",m=x", ",a=b"])
        return f"n,,n={USER},r={self.random.getrandbits(64):x}{extension}".encode()

    def _scram_final(self) -> bytes:
        proof = b64encode(self.random.randbytes(self.random.choice([32, 64, 5]))).decode()
        return f"c=biws,r={self.random.getrandbits(64):x},p={proof}".encode()

    def _token(self) -> bytes:
        return f"n,,\x01auth=Bearer {self.random.choice(self._forged)}\x01\x01".encode()

    def _noise(self) -> bytes:
        return self.random.randbytes(self.random.choice([0, 1, 40, 3000]))


def request(api: Api, version: int, message: Message) -> bytes:
    parts: list[Any] = encode_request(api, version, 7, "hostile", message)
    return b"".join(parts)[4:]


class Assault:
    """Sends bursts over ever new connections, in any of `WAYS`.

    `ports`: by the listener's name. `tls`: what a client of the listener with TLS needs.
    """

    def __init__(self, ports: Mapping[str, int], tls: ssl.SSLContext, seed: int) -> None:
        self._ports = ports
        self._tls = tls
        self._intruder = Intruder(seed)
        self.frames = 0
        self.answers: Counter[tuple[str, bool]] = Counter()  # and whether the broker said anything

    async def run(self, frames: int) -> None:
        await asyncio.gather(*(self._attack(frames) for _ in range(CONNECTIONS)))

    async def _attack(self, frames: int) -> None:
        while self.frames < frames:
            burst = self._intruder.burst()
            self.frames += len(burst)
            way = self._intruder.random.choice(WAYS)
            port = self._ports["IN" if way == "plain" else "TLS"]
            tls = self._tls if way == "tls" else None
            reader, writer = await asyncio.open_connection(HOST, port, ssl=tls)
            try:
                writer.write(b"".join(struct.pack(">i", len(each)) + each for each in burst))
                if tls is None:
                    writer.write_eof()
                else:  # it has no half-closed connections: a frame that nobody can send is the end
                    writer.write(struct.pack(">i", -1))
                said = await asyncio.wait_for(reader.read(), PATIENCE_S)
                self.answers[way, bool(said)] += 1
            except ConnectionError:
                self.answers[way, False] += 1
            finally:
                writer.transport.abort()


def test_se_3_hostile_frames_get_nobody_in_and_stall_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    print("seed", SEED)
    caplog.set_level(logging.DEBUG, "barnabas")
    over = threading.Event()
    authority = Authority.make(tmp_path / "authority")
    tls = ssl.create_default_context(cafile=str(authority.truststore))
    with secured_broker(tmp_path, **LISTENERS, **authority.server().settings()) as secured:
        # The broker's loggers are quiet by themselves: here everything that they say counts.
        for part in ("broker", "net"):
            caplog.set_level(logging.DEBUG, f"barnabas.{part}")
        ports = {each.name: each.port for each in secured.broker.server.listeners}
        assault = Assault(ports, tls, SEED)

        def attack() -> None:
            try:
                asyncio.run(assault.run(FRAMES))
            finally:
                over.set()

        with SyncProducer(secured.servers, linger_ms=0, **options("SCRAM-SHA-512")) as producer:
            attacker = threading.Thread(target=attack)
            attacker.start()
            served = 0
            while not over.wait(0.01):
                producer.send("bystander", b"x").result(PATIENCE_S)
                served += 1
            attacker.join()
        for mechanism in MECHANISMS:
            with SyncProducer(secured.servers, **options(mechanism)) as producer:
                producer.send("afterwards", b"x").result(PATIENCE_S)
    assert assault.frames >= FRAMES
    print(assault.frames, "frames; connections, and whether answered:", dict(assault.answers))
    for way in WAYS:
        assert assault.answers[way, way != "plain to tls"] > FRAMES // 100, assault.answers
    assert assault.answers["plain", False] > FRAMES // 100, assault.answers
    assert served > 10
    failures = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert [each.getMessage() for each in failures] == []
    assert "failed authentication" in caplog.text
    assert SECRET not in caplog.text
