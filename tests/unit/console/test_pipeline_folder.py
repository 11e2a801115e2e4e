"""IN-6: only a pipeline's own files are read, and each fault is a clear sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from barnabas.console.pipeline_folder import MOST_BYTES, MOST_PAGES, PipelineFolder
from barnabas.console.problem import WebProblem

FIGURES = {
    "made_at": "2026-11-28T12:00:00+00:00",
    "accounts": [
        {"file": "a.log", "read": 6, "valid": 4, "dead_letters": 2, "sent_twice": 0},
        {"file": "b.log", "read": 3, "valid": 2, "dead_letters": 0, "sent_twice": 1},
    ],
    "dead_letters": [{"reason": "too long", "records": 2}],
}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    (folder / "report-data").mkdir(parents=True)
    (folder / "report.html").write_text("<p>a page</p>")
    (folder / "report-data" / "report.json").write_text(json.dumps(FIGURES))
    (folder / "run.log").write_text("secret")
    (tmp_path / "secret.html").write_text("secret")
    return folder


def problem_of(folder: Path) -> str:
    (row,) = PipelineFolder(folder, 0).rows()
    assert row["read"] is None
    return row["problem"]


def test_in_6_the_account_is_that_of_all_files(out: Path) -> None:
    (row,) = PipelineFolder(out, 3).rows()
    assert (row["number"], row["page"], row["problem"]) == (3, "report.html", "")
    assert (row["read"], row["valid"], row["rejected"], row["sent_twice"]) == (9, 6, 2, 1)
    assert (row["balances"], row["made_at"], row["batch_at"]) == (True, 1_795_867_200_000, None)
    assert row["reasons"] == [{"reason": "too long", "records": 2}]


def test_in_6_an_account_that_does_not_add_up_is_told(out: Path) -> None:
    folder = PipelineFolder(out, 0)
    assert folder.rows()[0]["balances"] is True
    changed = json.dumps(FIGURES).replace('"read": 6', '"read": 60')
    (out / "report-data" / "report.json").write_text(changed)
    (row,) = folder.rows()
    assert (row["read"], row["balances"]) == (63, False)


def test_in_6_the_last_batch_is_the_newest_commit(out: Path) -> None:
    log = out / "tables" / "control" / "_delta_log"
    log.mkdir(parents=True)
    for number, at_s in enumerate((1_000, 3_000, 2_000)):
        (log / f"{number:020}.json").write_text("{}")
        os.utime(log / f"{number:020}.json", (at_s, at_s))
    (row,) = PipelineFolder(out, 0).rows()
    assert row["batch_at"] == 3_000_000


@pytest.mark.parametrize(
    "name",
    [
        "../secret.html",
        "report-data/../../secret.html",
        "report-data/..",
        "/etc/passwd",
        "..",
        "",
        ".hidden.html",
        "run.log",
        "tables/x.json",
        "report-data/report.json/x.csv",
        "report.html\0.html",
        "a\nb.html",
    ],
)
def test_in_6_nothing_but_pages_and_their_figures_is_served(out: Path, name: str) -> None:
    (out / "tables").mkdir()
    (out / "tables" / "x.json").write_text("secret")
    (out / ".hidden.html").write_text("secret")
    with pytest.raises(WebProblem) as refused:
        PipelineFolder(out, 0).read(name)
    assert refused.value.status == 404


def test_in_6_a_page_and_its_figures_are_served(out: Path) -> None:
    folder = PipelineFolder(out, 0)
    assert folder.read("report.html") == b"<p>a page</p>"
    assert json.loads(folder.read("report-data/report.json")) == FIGURES


def test_in_6_links_are_not_followed(out: Path) -> None:
    (out / "link.html").symlink_to(out.parent / "secret.html")
    (out / "inner.html").symlink_to(out / "report.html")
    elsewhere = out.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x.csv").write_text("secret")
    (out / "link-data").symlink_to(elsewhere)
    folder = PipelineFolder(out, 0)
    for name in ("link.html", "inner.html", "link-data/x.csv"):
        with pytest.raises(WebProblem, match="symbolic link") as refused:
            folder.read(name)
        assert refused.value.status == 404
    problems = {row["page"]: row["problem"] for row in folder.rows()}
    assert "symbolic link" in problems["link.html"] and problems["report.html"] == ""


def test_in_6_a_pipe_does_not_hold_the_console_up(out: Path) -> None:
    os.mkfifo(out / "pipe.html")
    with pytest.raises(WebProblem, match="not a regular file"):
        PipelineFolder(out, 0).read("pipe.html")


def test_in_6_a_page_that_is_too_large_is_refused(out: Path) -> None:
    with (out / "report.html").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert f"{MOST_BYTES + 1} bytes" in problem_of(out)


def test_in_6_a_folder_without_a_page_says_what_to_do(tmp_path: Path) -> None:
    assert "give the folder of its --out" in problem_of(tmp_path)
    assert "there is no folder" in problem_of(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    assert "is not a folder" in problem_of(tmp_path / "file")


@pytest.mark.parametrize("content", ["", '{"made_at": "2026', "[1]", '{"made_at": 1}', "[" * 9_999])
def test_in_6_figures_that_are_half_written_are_told(out: Path, content: str) -> None:
    (out / "report-data" / "report.json").write_text(content)
    assert "report-data/report.json is not complete" in problem_of(out)


def test_in_6_a_page_without_figures_is_told(out: Path) -> None:
    (out / "report-data" / "report.json").unlink()
    assert "report-data/report.json is missing" in problem_of(out)


def test_in_6_the_number_of_pages_is_limited(out: Path) -> None:
    for number in range(MOST_PAGES):
        (out / f"page-{number}.html").write_text("")
    assert len(PipelineFolder(out, 0).rows()) == MOST_PAGES
