"""The memory that a process may use: the machine's, or its container's."""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.runtime.machine_memory import of_this_machine


def test_a_container_may_have_less_than_its_machine(tmp_path: Path) -> None:
    unlimited, limited, missing = tmp_path / "max", tmp_path / "limit", tmp_path / "none"
    unlimited.write_text("max\n")
    limited.write_text("1000000\n")
    machine = of_this_machine([unlimited, missing])
    assert machine > 1000000
    assert of_this_machine([unlimited, limited]) == 1000000
    limited.write_text(f"{machine * 2}\n")
    assert of_this_machine([limited]) == machine
