"""What is missing skips for a user and fails where everything must run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import foreign


@pytest.mark.parametrize(
    ("required", "outcome"), [("all", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_a_missing_part_says_what_to_install(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BARNABAS_REQUIRE", required)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(outcome, match="apt-get install kcat"):
        foreign.require_kcat()
    monkeypatch.setenv("BARNABAS_SHARED", str(tmp_path))
    with pytest.raises(outcome, match="BARNABAS_SHARED"):
        foreign.require_shared()


def test_what_was_fetched_is_kept_and_a_failed_fetch_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path))
    calls: list[Path] = []

    def build(directory: Path) -> None:
        calls.append(directory)
        (directory / "part.jar").touch()

    kept = foreign.cached("parts", build)
    assert foreign.cached("parts", build) == kept
    assert len(calls) == 1
    assert [path.name for path in kept.iterdir()] == ["part.jar"]

    def break_off(directory: Path) -> None:
        (directory / "half.jar").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        foreign.cached("others", break_off)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]
