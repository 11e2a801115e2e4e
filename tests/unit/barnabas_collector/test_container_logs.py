"""LG-2: what the logs of containers give: the program's lines, and whose they are."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from barnabas_collector.container_logs import ContainerReader, PartJoiner, container_of, unwrap
from barnabas_collector.line_cutter import MAX_LINE_BYTES, LineCutter
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.positions import Positions
from barnabas_collector.record_reader import INDENTED, record_start
from barnabas_collector.watched_logs import WatchedLogs

ID = "0123456789abcdef" * 4
TIME = b"2026-11-27T05:45:12.034123456Z"
UID = "6f1b8a2e-0a5d-4c1e-9f7e-3a1c6a2b9d10"
POD = f"/pods/shop_orders-7d9c5b-x2x_{UID}/web/3.log"


def cri(text: bytes, stream: bytes = b"stdout", tag: bytes = b"F") -> bytes:
    return b" ".join((TIME, stream, tag, text)) + b"\n"


def docker(text: str, stream: str = "stdout") -> bytes:
    return json.dumps({"log": text, "stream": stream, "time": TIME.decode()}).encode() + b"\n"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (f"/var/lib/docker/containers/{ID}/{ID}-json.log", {"container.id": ID}),
        (f"/home/a/.local/share/docker/containers/{ID}/{ID}-json.log", {"container.id": ID}),
        (f"/run/containers/storage/overlay-containers/{ID}/userdata/ctr.log", {"container.id": ID}),
        (
            f"/var/log{POD}",
            {
                "container.name": "web",
                "kubernetes.namespace": "shop",
                "kubernetes.pod": "orders-7d9c5b-x2x",
                "kubernetes.pod.uid": UID,
            },
        ),
        (
            f"/var/log/containers/orders-7d9c5b-x2x_shop_web-side-{ID}.log",
            {
                "container.id": ID,
                "container.name": "web-side",
                "kubernetes.namespace": "shop",
                "kubernetes.pod": "orders-7d9c5b-x2x",
            },
        ),
        ("/var/log/app.log", None),
        (f"/var/lib/docker/containers/{ID}/other-json.log", None),
        (f"/var/log{POD}/app.log", None),
    ],
)
def test_a_path_says_whose_log_it_is(path: str, headers: dict[str, str] | None) -> None:
    found = container_of(Path(path))
    assert headers == (found and {name: value.decode() for name, value in found})


def test_links_and_dockers_description_have_the_rest(tmp_path: Path) -> None:
    own = tmp_path / "docker" / "containers" / ID / f"{ID}-json.log"
    pod = Path(f"{tmp_path}/log{POD}")
    link = tmp_path / "log" / "containers" / f"orders_shop_web-{ID}.log"
    for each in (own, pod, link):
        each.parent.mkdir(parents=True)
    own.touch()
    assert container_of(own) == (("container.id", ID.encode()),)
    own.with_name("config.v2.json").write_text('{"ID": "...", "Name": "/brave_lovelace"}')
    assert dict(container_of(own) or ())["container.name"] == b"brave_lovelace"
    pod.symlink_to(own)
    link.symlink_to(os.path.relpath(pod, link.parent))
    found = dict(container_of(link) or ())
    assert found == {
        "container.id": ID.encode(),
        "container.name": b"web",
        "kubernetes.namespace": b"shop",
        "kubernetes.pod": b"orders",
        "kubernetes.pod.uid": UID.encode(),
    }
    own.unlink()
    own.symlink_to(link)  # a loop
    assert container_of(link)


@pytest.mark.parametrize(
    ("line", "text", "is_partial"),
    [
        (cri(b"INFO fine"), b"INFO fine", False),
        (cri(b""), b"", False),
        (cri(b"half of", tag=b"P"), b"half of", True),
        (cri(b"\xff\0 bytes", b"stderr", b"F:more"), b"\xff\0 bytes", False),
        (TIME + b" stdout F\n", b"", False),
        (b"2026-11-27T05:45:12+01:00 stdout F a\n", b"a", False),
        (docker("INFO f\u00efne\n"), "INFO f\u00efne".encode(), False),
        (docker("half of"), b"half of", True),
        (docker('{"log":"its own"}\n'), b'{"log":"its own"}', False),
        (docker("\ud800\n"), b"?", False),
    ],
)
def test_the_value_is_what_the_program_wrote(line: bytes, text: bytes, is_partial: bool) -> None:
    part = unwrap(line[:-1])
    assert (part.text, part.is_partial) == (text, is_partial)
    assert dict(part.more).keys() == {"container.stream", "container.time"}


@pytest.mark.parametrize(
    "line",
    [
        b"", b"plain", b'{"log":"cut o', b'{"log":7,"stream":"stdout","time":""}', b'{"log":"a"}',
        b'{"log":["a"],"stream":"a","time":"b"}', b'{"log":"a","stream":null,"time":"b"}',
        TIME + b" stdin F no stream", TIME + b" stdout X no tag", b"today stdout F a",
    ],
)  # fmt: skip
def test_a_line_that_nothing_wraps_is_sent_as_it_is(line: bytes) -> None:
    assert unwrap(line) == (line, (), False)


def texts(data: bytes, joiner: PartJoiner) -> list[tuple[int, bytes]]:
    return [(each.position, each.text) for each in joiner.join(LineCutter().cut(data))]


def test_parts_of_two_streams_are_joined_in_the_order_of_their_beginnings() -> None:
    joiner = PartJoiner()
    lines = [
        cri(b"a1 ", tag=b"P"), cri(b"b1 ", b"stderr", b"P"), cri(b"b2", b"stderr"),
        cri(b"c", b"stderr"), cri(b"a2 ", tag=b"P"), cri(b"a3"), cri(b"d"),
    ]  # fmt: skip
    starts = [sum(map(len, lines[:at])) for at in range(len(lines))]
    assert texts(b"".join(lines), joiner) == [
        (0, b"a1 a2 a3"), (starts[1], b"b1 b2"), (starts[3], b"c"), (starts[6], b"d")
    ]  # fmt: skip
    assert joiner.first is None and joiner.take() == []


def test_what_waits_is_limited_and_nothing_of_it_is_lost() -> None:
    joiner = PartJoiner()
    piece = b"x" * 16_000
    data = b"".join(cri(piece, tag=b"P") for _ in range(100)) + cri(b"end")
    records = joiner.join(LineCutter().cut(data))
    assert len(records) > 1
    assert all(len(each.text) <= MAX_LINE_BYTES + len(piece) for each in records)
    assert b"".join(each.text for each in records) == piece * 100 + b"end"


def test_a_stack_trace_of_a_container_is_one_record_of_its_stream() -> None:
    wrapped = [
        docker("ERROR failed\n", "stderr"), docker("  at a\n", "stderr"), docker("INFO fine\n"),
        docker("  of stdout\n"), docker("  at b\n", "stderr"), docker("INFO "),
    ]  # fmt: skip
    data = b"".join(wrapped)
    reader = ContainerReader(io.BytesIO(data), 0, 1, record_start(INDENTED))
    records = [each for portion in reader.portions() for each in portion]
    assert [each.text for each in records] == [b"ERROR failed\n  at a", b"INFO fine\n  of stdout"]
    assert [dict(each.more)["container.stream"] for each in records] == [b"stderr", b"stdout"]
    assert reader.number == 5 and reader.position == sum(map(len, wrapped[:4]))
    assert reader.unfinished_bytes == sum(map(len, wrapped[4:]))
    assert [each.text for each in reader.last()] == [b"  at b", b"INFO "]
    assert reader.unfinished_bytes == 0 and reader.position == len(data)


def test_each_line_once_however_a_pods_log_is_rotated(tmp_path: Path) -> None:
    log = Path(f"{tmp_path}{POD}")
    log.parent.mkdir(parents=True)
    positions = Positions("here")
    paths = LogPaths([f"{tmp_path}/pods/*/*/*.log"])

    def look(*, is_last_look: bool = False) -> list[bytes]:
        found = []
        logs = WatchedLogs(paths, positions)
        for portion in logs.portions(0.0, is_last_look=is_last_look):
            assert dict(portion.more)["kubernetes.pod"] == b"orders-7d9c5b-x2x"
            found += [line.text for line in portion.lines]
            positions.save(portion.progress)
        logs.close()
        return found

    log.write_bytes(cri(b"one") + cri(b"half of ", tag=b"P"))
    os.utime(log, (2**32, 2**32))  # so that it counts as written just now, however slow this is
    assert look() == [b"one"], "its rest is to come"
    with log.open("ab") as file:
        file.write(cri(b"two"))
    assert look() == [b"half of two"]
    log.rename(log.with_name("3.log.20261127-054512"))
    with log.with_name("3.log.20261127-054512").open("ab") as file:
        file.write(cri(b"three"))
    log.write_bytes(cri(b"four") + cri(b"left alone", tag=b"P"))
    assert look(is_last_look=True) == [b"three", b"four", b"left alone"]
    assert look(is_last_look=True) == []
