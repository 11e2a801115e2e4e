"""LG-2: the entries of systemd's journal, as `journalctl` gives them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import ConfigError
from barnabas_collector.journal import Entry, Journal
from tests.kit.processes.journalctl import FakeJournal


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJournal:
    journal = FakeJournal(tmp_path / "bin")
    monkeypatch.setenv("PATH", journal.path)
    return journal


def run(
    work: Callable[[Journal], Awaitable[list[Entry]]], cursor: str | None = None, **options: Any
) -> list[Entry]:
    async def within() -> list[Entry]:
        journal = Journal(cursor, **options)
        try:
            await journal.start()
            async with asyncio.timeout(60):
                return await work(journal)
        finally:
            await journal.close()

    return asyncio.run(within())


async def everything(journal: Journal) -> list[Entry]:
    found: list[Entry] = []
    while not journal.is_at_end():
        await journal.news.wait()
        found += journal.take()
    return found


async def some(journal: Journal, count: int) -> list[Entry]:
    found: list[Entry] = []
    while len(found) < count:
        await journal.news.wait()
        found += journal.take()
    return found


def messages(entries: list[Entry]) -> list[Any]:
    return [json.loads(entry.value)["MESSAGE"] for entry in entries]


def test_present_entries_are_read_after_the_cursor(fake: FakeJournal) -> None:
    assert run(everything, follow=False) == [], "-- No entries -- is none"
    fake.add("one", "two", "three")
    entries = run(everything, follow=False)
    assert messages(entries) == ["one", "two", "three"]
    assert entries[1].value == (fake.directory / "entries").read_bytes().split(b"\n")[1]
    assert messages(run(everything, entries[0].cursor, follow=False)) == ["two", "three"]
    assert fake.arguments()[-1] == "--output=json --all --no-pager --after-cursor=s=1;i=1"


def test_later_entries_are_read_as_they_are_written(fake: FakeJournal) -> None:
    fake.add("one")

    async def follow(journal: Journal) -> list[Entry]:
        found = await some(journal, 1)
        fake.add("two")
        return found + await some(journal, 1)

    assert messages(run(follow)) == ["one", "two"]


def test_from_the_end_only_later_entries_are_read(fake: FakeJournal) -> None:
    fake.add("one", "two")

    async def later(journal: Journal) -> list[Entry]:
        assert journal.cursor == "s=1;i=2"
        fake.add("three")
        return await some(journal, 1)

    assert messages(run(later, from_end=True)) == ["three"]
    assert messages(run(everything, "s=1;i=1", from_end=True, follow=False)) == ["two", "three"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([*b"\x1b[31mred\x1b[0m"], "\x1b[31mred\x1b[0m"),
        ([*b"caf\xe9"], "caf\\xe9"),
        ([*"é".encode()], "é"),
        (["one", "two", [*b"three"]], ["one", "two", "three"]),
        (None, None),
        ('"__CURSOR":"s=9" : [1]', '"__CURSOR":"s=9" : [1]'),
    ],
)
def test_arrays_of_bytes_are_texts(fake: FakeJournal, value: Any, text: Any) -> None:
    fake.add(value)
    (entry,) = run(everything, follow=False)
    assert messages([entry]) == [text] and entry.cursor == "s=1;i=1"


def test_an_entry_that_is_too_long_is_a_shorter_object(fake: FakeJournal) -> None:
    fake.add("x" * 300_000, "next")
    long, after = run(everything, follow=False)
    fields = json.loads(long.value)
    assert fields["_SYSTEMD_UNIT"] == "app.service" and long.cursor == "s=1;i=1"
    assert "too long to be sent" in fields["MESSAGE"] and long.size_bytes > 300_000
    assert messages([after]) == ["next"]


def test_what_waits_is_limited(fake: FakeJournal) -> None:
    for _ in range(40):
        fake.add(*["x" * 100_000] * 10)

    async def slowly(journal: Journal) -> list[Entry]:
        found: list[Entry] = []
        while not journal.is_at_end():
            await journal.news.wait()
            await asyncio.sleep(0.05)
            taken = journal.take()
            assert sum(len(entry.value) for entry in taken) < 9 << 20
            found += taken
        return found

    assert len(run(slowly, follow=False)) == 400


def test_a_process_that_was_killed_is_started_again(fake: FakeJournal) -> None:
    fake.add("one")

    async def kill(journal: Journal) -> list[Entry]:
        found = await some(journal, 1)
        os.kill(fake.process(), signal.SIGKILL)
        fake.add("two")
        return found + await some(journal, 1)

    assert messages(run(kill)) == ["one", "two"]


def test_ux_4_a_failure_is_named(fake: FakeJournal) -> None:
    fake.fail("Failed to open the journal: Permission denied\nand more\n")
    for follow in (True, False):
        with pytest.raises(ConfigError) as caught:
            run(everything, follow=follow)
        assert str(caught.value) == (
            "cannot read the journal: journalctl failed (1):"
            " Failed to open the journal: Permission denied; and more"
        )


def test_ux_4_without_journalctl_the_message_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"cannot run journalctl \(No such file"):
        run(everything)
