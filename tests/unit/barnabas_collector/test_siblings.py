"""Which names are those of a log's rotated files, and in which order they were written."""

from __future__ import annotations

import pytest

from barnabas_collector.siblings import siblings


@pytest.mark.parametrize(
    "names",
    [
        ["access.log.10.gz", "access.log.9.gz", "access.log.2.gz", "access.log.1", "access.log.0"],
        ["access.log-20251231.gz", "access.log-20261122", "access.log-20261123"],
        ["access.log-20261123", "access.log-20261123-1795392000"],
        ["access.log.2026-11-22-23", "access.log.2026-11-23-00"],
        ["access-20261122.log.gz", "access-20261123.log"],
        ["access-12-31-2025-1.log.gz", "access-11-22-2026-1.log.gz", "access-11-22-2026-2.log"],
        ["access__2024-01-01_00-00-00.log", "access__2024-01-01_12-00-00.log"],
        ["access.log-1704067200", "access.log-1795392000.zst"],
        ["access.log-20261123-1795392000.bz2", "access.log-2026112315"],
        ["access.log-261122", "access.log-261123.xz"],
        ["access.log-2026-W47", "access.log-2026-W48"],
        ["access.log.2026-11-23.0.gz", "access.log.2026-11-23.1.gz"],
        ["access.log.3.gz", "access.log.2.xz", "access.log.1.zst"],
        ["access.log.2", "access.log.1", "access.log.old", "access.log.gz"],
    ],
)
def test_the_oldest_is_the_first(names: list[str]) -> None:
    assert siblings("access.log", sorted(names)) == names


def test_other_files_are_none_of_the_logs() -> None:
    others = [
        "access.log",
        "access.log.swp",
        "access.log.offset",
        "access.log~",
        "access.log.1.bak",
        "access.logs.1",
        "access-2.log",
        "access-1926-1000.log",
        "error.log.1",
        "other_vhosts_access.log.1",
    ]
    assert siblings("access.log", others) == []
    assert siblings("access", ["access.1", "access_log.1"]) == ["access.1"]


def test_a_file_beside_its_compressed_form_stands_for_both() -> None:
    names = ["access.log.1", "access.log.1.gz", "access.log.2.gz"]
    assert siblings("access.log", names) == ["access.log.2.gz", "access.log.1"]
