"""Simulated TCP: in order, once, torn, late; and what a cut, a crash and a power cut do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.network.listeners import Listener
from simulation.whole.lives import Life
from simulation.whole.loop import VirtualLoop, within
from simulation.whole.network import Network
from simulation.whole.sockets import WINDOW_BYTES, ListeningSocket

PORT = 9092


class Talker(asyncio.BufferedProtocol):
    """One side of a connection, which notes what happens to it."""

    def __init__(self, buffer_bytes: int = 65536) -> None:
        self.buffer = bytearray(buffer_bytes)
        self.received = bytearray()
        self.reads = 0
        self.events: list[str] = []
        self.error: Exception | None = None
        self.transport: asyncio.Transport
        self.lost = asyncio.Event()
        self.heard = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.events.append("made")

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        self.reads += 1
        self.heard.set()

    def eof_received(self) -> bool:
        self.events.append("eof")
        return False

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")
        self.error = exc
        self.lost.set()

    async def has(self, size: int) -> bytes:
        while len(self.received) < size:
            self.heard.clear()
            await self.heard.wait()
        return bytes(self.received)


class Stage:
    """A server's process on one machine, a client's on another."""

    def __init__(self, seed: int = 1) -> None:
        self.loop = VirtualLoop(seed)
        self.network = Network(self.loop, seed)
        self.server = self.network.process("server")
        self.client = self.network.process("client")
        self.accepted: list[Talker] = []
        self.listening: ListeningSocket
        self.buffer_bytes = 65536

    def listen(self, life: Life | None = None, backlog: int = 50) -> None:
        life = life or self.server
        [sock] = life.run(self.network.bind, Listener("PLAINTEXT", life.host, PORT), backlog)
        listening = self.listening = cast(ListeningSocket, sock)

        def readable() -> None:
            accepted, _ = listening.accept()
            talker = Talker(self.buffer_bytes)
            self.accepted.append(talker)
            self.loop.create_task(self.loop.connect_accepted_socket(lambda: talker, accepted))

        life.run(self.loop.add_reader, listening.fileno(), readable)

    async def dial(self, host: str = "server", life: Life | None = None) -> Talker:
        _, talker = await (life or self.client).call(
            self.loop.create_connection(Talker, host, PORT)
        )
        return cast(Talker, talker)

    async def pair(self) -> tuple[Talker, Talker]:
        """A client's side and the server's of a new connection."""
        before = len(self.accepted)
        mine = await self.dial()
        while len(self.accepted) == before or "made" not in self.accepted[-1].events:
            await asyncio.sleep(0.001)
        return mine, self.accepted[-1]


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    assert made.loop.findings == []
    made.loop.close()


def story(stage: Stage, play: Callable[[], Any]) -> None:
    stage.loop.run(within(600_000, play()))


def test_bytes_pass_both_ways_and_take_time(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        began = stage.loop.time()
        mine.transport.write(b"question")
        assert await theirs.has(8) == b"question"
        theirs.transport.write(b"answer")
        assert await mine.has(6) == b"answer"
        assert 0.0001 < stage.loop.time() - began < 0.1
        info = mine.transport.get_extra_info
        assert (info("peername"), info("sockname")[0]) == (("server", PORT), "client")
        assert (info("socket"), info("sslcontext")) == (None, None)
        assert theirs.transport.get_extra_info("peername") == info("sockname")

    story(stage, play)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 200_000), max_size=12))
def test_bytes_arrive_once_in_order_and_torn(seed: int, sizes: list[int]) -> None:
    stage = Stage(seed)
    stage.buffer_bytes = Random(seed).choice((7000, 65536, 1 << 18))
    sent = Random(seed).randbytes(sum(sizes))

    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        position = 0
        for size in sizes:
            mine.transport.write(sent[position : position + size])
            position += size
        mine.transport.close()
        await theirs.lost.wait()
        assert theirs.received == sent
        assert theirs.error is None
        assert theirs.events[-2:] == ["eof", "lost"]

    story(stage, play)
    stage.loop.close()


def test_some_writes_are_torn(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        for _ in range(300):
            mine.transport.write(bytes(100))
            await asyncio.sleep(0.05)
        await theirs.has(30_000)
        assert theirs.reads > 305

    story(stage, play)


def test_a_reader_that_pauses_makes_the_writer_wait(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        mine.transport.set_write_buffer_limits(high=0)
        theirs.transport.pause_reading()
        mine.transport.write(bytes(WINDOW_BYTES))
        assert "pause" not in mine.events
        mine.transport.write(bytes(50_000))
        assert mine.events == ["made", "pause"]
        await asyncio.sleep(60)
        assert (len(theirs.received), mine.transport.get_write_buffer_size()) == (0, 50_000)
        theirs.transport.resume_reading()
        await theirs.has(WINDOW_BYTES + 50_000)
        await asyncio.sleep(1)
        assert mine.events == ["made", "pause", "resume"]
        assert mine.transport.get_write_buffer_size() == 0

    story(stage, play)


def test_close_sends_what_was_written_and_abort_does_not(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        for leave, arrives in (("close", 3 * WINDOW_BYTES), ("abort", WINDOW_BYTES)):
            mine, theirs = await stage.pair()
            mine.transport.write(bytes(3 * WINDOW_BYTES))
            getattr(mine.transport, leave)()
            assert mine.transport.is_closing()
            await theirs.lost.wait()
            assert len(theirs.received) == arrives
            assert mine.events[-1] == "lost"
            mine.transport.write(b"into nothing")

    story(stage, play)


def test_an_end_that_closes_over_unread_bytes_resets(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        theirs.transport.pause_reading()
        mine.transport.write(b"unread")
        await asyncio.sleep(1)
        theirs.transport.close()
        await mine.lost.wait()
        assert isinstance(mine.error, ConnectionResetError)

    story(stage, play)


def test_a_port_without_a_listener_refuses(stage: Stage) -> None:
    async def play() -> None:
        stage.network.host("server")
        with pytest.raises(ConnectionRefusedError):
            await stage.dial()
        with pytest.raises(OSError, match="not known"):
            await stage.dial("nowhere")
        stage.listen()
        await stage.dial()
        stage.listening.close()
        with pytest.raises(ConnectionRefusedError):
            await stage.dial()
        assert stage.loop.time() < 1

    story(stage, play)


def test_a_port_is_taken_until_its_process_ends(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        with pytest.raises(OSError, match="in use"):
            stage.listen()
        stage.server.kill()
        stage.listen(stage.network.process("server again", "server"))
        await stage.pair()

    story(stage, play)


def test_a_full_backlog_makes_others_wait(stage: Stage) -> None:
    async def play() -> None:
        stage.listen(backlog=1)
        stage.loop.remove_reader(stage.listening.fileno())
        first, second = await stage.dial(), await stage.dial()
        waiting = asyncio.create_task(stage.dial())
        await asyncio.sleep(0.5)
        assert not waiting.done()
        stage.listening.accept()
        await waiting
        assert stage.loop.time() >= 1
        stage.listening.close()
        await second.lost.wait()
        assert isinstance(second.error, ConnectionResetError)
        assert not first.lost.is_set()

    story(stage, play)


# ---- what goes wrong ----


def test_a_killed_process_loses_its_connections_at_once(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        unread, _ = await stage.pair()
        stage.server.pause()
        unread.transport.write(b"will not be read")
        theirs.transport.write(b"in the kernel already")
        await asyncio.sleep(1)
        stage.server.kill()
        await mine.lost.wait()
        await unread.lost.wait()
        assert mine.received == b"in the kernel already"
        assert mine.error is None
        assert isinstance(unread.error, ConnectionResetError)
        assert "lost" not in theirs.events, "nothing of a killed process runs"
        with pytest.raises(ConnectionRefusedError):
            await stage.dial()

    story(stage, play)


def test_a_paused_process_is_connected_to_and_reads_later(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        stage.server.pause()
        mine.transport.write(b"wait")
        late = await stage.dial()
        late.transport.write(b"as well")
        await asyncio.sleep(30)
        assert (theirs.received, len(stage.accepted)) == (b"", 1)
        stage.loop.resume(stage.server)
        assert await theirs.has(4) == b"wait"
        await asyncio.sleep(0.1)
        assert stage.accepted[1].received == b"as well"

    story(stage, play)


def test_a_cut_is_silence_in_one_direction(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        stage.network.cut("client", "server")
        mine.transport.write(b"one ")
        theirs.transport.write(b"still heard")
        assert await mine.has(11) == b"still heard"
        mine.transport.write(b"two")
        with pytest.raises(TimeoutError):
            await within(5000, stage.dial())
        await asyncio.sleep(60)
        assert (theirs.received, theirs.events) == (b"", ["made"])
        dialled = asyncio.create_task(stage.dial())
        await asyncio.sleep(0.5)
        stage.network.mend("client", "server", resets=0)
        assert await theirs.has(7) == b"one two"
        await dialled

    story(stage, play)


def test_cuts_add_up_and_may_end_in_a_reset(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        idle, _ = await stage.pair()
        stage.network.cut("client", "server")
        stage.network.cut("server", "client")
        stage.network.cut("client", "server")
        mine.transport.write(b"lost")
        await asyncio.sleep(1)
        stage.network.mend("client", "server")
        stage.network.mend("server", "client")
        await asyncio.sleep(1)
        assert theirs.received == b""
        stage.network.mend("client", "server", resets=1)
        await mine.lost.wait()
        await theirs.lost.wait()
        assert isinstance(mine.error, ConnectionResetError)
        assert isinstance(theirs.error, ConnectionResetError)
        assert not idle.lost.is_set(), "nothing of it was held up"

    story(stage, play)


def test_a_machine_without_power_says_nothing_and_then_knows_nothing(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        idle, _ = await stage.pair()
        stage.network.power_off("server")
        stage.server.kill()
        mine.transport.write(b"hello?")
        with pytest.raises(TimeoutError):
            await within(5000, stage.dial())
        await asyncio.sleep(60)
        assert not mine.lost.is_set()
        stage.network.power_on("server")
        await mine.lost.wait()
        assert isinstance(mine.error, ConnectionResetError)
        assert theirs.received == b""
        with pytest.raises(ConnectionRefusedError):
            await stage.dial()
        assert not idle.lost.is_set(), "half open, until it says something"
        idle.transport.write(b"and you?")
        await idle.lost.wait()
        assert isinstance(idle.error, ConnectionResetError)

    story(stage, play)


def test_a_reset_reaches_both_sides_even_those_that_do_not_read(stage: Stage) -> None:
    async def play() -> None:
        stage.listen()
        mine, theirs = await stage.pair()
        theirs.transport.pause_reading()
        mine.transport.set_write_buffer_limits(high=0)
        mine.transport.write(bytes(2 * WINDOW_BYTES))
        mine.transport.pause_reading()
        await asyncio.sleep(1)
        stage.network.reset("server", "client")
        await mine.lost.wait()
        await asyncio.sleep(1)
        assert not theirs.lost.is_set(), "it neither reads nor writes"
        theirs.transport.write(b"now it does")
        await theirs.lost.wait()
        assert isinstance(theirs.error, ConnectionResetError)

    story(stage, play)


@pytest.mark.parametrize("patience_ms", [100, 400])
def test_an_abandoned_dialling_leaves_no_connection_behind(stage: Stage, patience_ms: int) -> None:
    """Whether the other machine has heard of it by then, or will only hear of it."""

    async def play() -> None:
        stage.listen()
        stage.network.slow("server", 300_000)
        with pytest.raises(TimeoutError):
            await stage.client.call(
                within(patience_ms, stage.loop.create_connection(Talker, "server", PORT))
            )
        await asyncio.sleep(5)
        assert [each.events for each in stage.accepted] == (
            [["made", "eof", "lost"]] if patience_ms > 300 else []
        )
        assert not stage.network.host("client").ends
        assert not stage.network.host("server").ends

    story(stage, play)


def test_the_seed_is_all(stage: Stage) -> None:
    def digest(seed: int) -> str:
        other = Stage(seed)

        async def play() -> None:
            other.listen()
            mine, theirs = await other.pair()
            for size in range(1, 3000, 100):
                mine.transport.write(bytes(size))
            await theirs.has(sum(range(1, 3000, 100)))

        story(other, play)
        other.loop.close()
        return other.network.digest

    assert digest(1) == digest(1) != digest(2)
