"""Every line once and in order, however a log is rotated while it is read, or while it is not."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from barnabas_collector.registry import Registry
from barnabas_collector.rotated_log import Portion, RotatedLog
from tests.kit.web_server import WebServer

HEADERS = (b"", b"\n", b"#Fields: date time\n")
NEVER_S, AT_ONCE_S = 3600.0, 0.0
STEPS = (
    "write", "write", "half", "rename", "rename without create", "reload", "copy", "copy under way",
    "compress 1", "compress 2", "poll", "poll", "restart", "kill", "run once",
)  # fmt: skip


class Reader:
    """A collector without a broker: what it takes is sent, and remembered unless it is killed."""

    def __init__(self, log: Path, quiet_s: float) -> None:
        self._log, self._quiet_s = log, quiet_s
        self._registry = log.with_name("registry.json")
        self.sent: list[tuple[str, int, bytes]] = []
        self.kills = 0
        self.start()

    def start(self) -> None:
        self.registry = Registry(self._registry)
        self._rotated = RotatedLog(self._log, self.registry, quiet_s=self._quiet_s)

    def poll(self) -> None:
        for portion in self._rotated.portions():
            self._send(portion)
            self.registry.save(portion.progress)

    def run_once(self) -> None:
        """A run without --service."""
        self.close()
        self.start()
        for portion in self._rotated.portions(is_last_look=True):
            self._send(portion)
            self.registry.save(portion.progress)
        self.restart()

    def kill(self) -> None:
        """After a portion has been sent and before that is remembered."""
        for portion in self._rotated.portions():
            self._send(portion)
            self.kills += 1
            break
        self.restart()

    def restart(self) -> None:
        self.close()
        self.start()

    def close(self) -> None:
        self._rotated.close()

    def _send(self, portion: Portion) -> None:
        file_id = portion.progress.file_id
        self.sent += [(file_id, line.position, line.text) for line in portion.lines]


def counted_once(sent: list[tuple[str, int, bytes]]) -> list[tuple[str, bytes]]:
    """As `behaviour.py` counts: of a file, positions that do not exceed the highest are repeated.

    Asserts that what is taken for a repetition is one.
    """
    highest: dict[str, int] = {}
    texts: dict[tuple[str, int], bytes] = {}
    once = []
    for file_id, position, text in sent:
        if position > highest.get(file_id, -1):
            highest[file_id] = position
            texts[file_id, position] = text
            once.append((file_id, text))
        else:
            assert texts.get((file_id, position)) == text, "another line counts as sent twice"
    return once


def step(name: str, server: WebServer, reader: Reader) -> None:
    match name.split():
        case ["write"]:
            server.write(2)
        case ["half"]:
            server.write_half_a_line()
        case ["rename", *rest]:
            server.rename(is_recreated=not rest)
        case ["reload"]:
            server.reload()
        case ["copy"]:
            server.copy_and_truncate()
        case ["copy", *_]:
            server.copy_under_way()
        case ["compress", number]:
            server.compress(int(number))
        case ["poll"]:
            reader.poll()
        case ["restart"]:
            reader.restart()
        case ["kill"]:
            reader.kill()
        case _:
            reader.run_once()


@given(
    st.sampled_from(HEADERS),
    st.sampled_from([NEVER_S, AT_ONCE_S]),
    st.lists(st.sampled_from(STEPS), max_size=30),
)
@example(HEADERS[2], NEVER_S, ["poll", "write", "rename", "compress 1", "reload", "poll"])
@example(HEADERS[1], AT_ONCE_S, ["write", "rename", "copy", "poll", "compress 1", "compress 2"])
@example(HEADERS[2], NEVER_S, ["write", "poll", "copy", "write", "write"])
@example(HEADERS[0], NEVER_S, ["write", "poll", "write", "rename", "kill", "copy", "run once"])
def test_every_line_once_and_in_order(header: bytes, quiet_s: float, steps: list[str]) -> None:
    """SP-4, at the collector's end. A header may be sent twice; a line may not."""
    with tempfile.TemporaryDirectory() as name:
        server = WebServer(Path(name), header)
        reader = Reader(server.log, quiet_s)
        reader.poll()  # what was rotated before the first look is passed over
        for each in steps:
            if quiet_s == AT_ONCE_S and each == "copy under way":
                continue  # it would be a file of its own at once
            if quiet_s == AT_ONCE_S and each.startswith("rename"):
                server.finish()  # a file taken for complete at once must be
            step(each, server, reader)
            if quiet_s == AT_ONCE_S and server.is_late:
                server.reload()
        server.reload()
        reader.poll()
        reader.poll()
        reader.close()
        server.close()
        _judge(server, reader, header)


def _judge(server: WebServer, reader: Reader, header: bytes) -> None:
    once = counted_once(reader.sent)
    lines = [(file_id, text) for file_id, text in once if text != header.rstrip(b"\n")]
    assert sorted(text for _, text in lines) == sorted(server.written)
    numbers: dict[str, list[int]] = {}
    for file_id, text in lines:
        numbers.setdefault(file_id, []).append(int(text.split()[-2]))
    assert all(of_file == sorted(of_file) for of_file in numbers.values())
    assert reader.registry.lines_sent() <= len(once)  # fewer: header lines truncated after a kill
    if not reader.kills:
        assert reader.registry.lines_sent() == len(once)
        assert len(reader.sent) == len(once), "without a crash nothing is sent twice"
