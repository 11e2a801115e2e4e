"""`barnabas alerts check` as its users type it (LG-4, UX-4)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from barnabas.cli.main import main
from tests.kit.alert_receivers import web_receiver

CHECKOUT = Path(__file__).parents[4]
RULES = """
[[alert]]
name = "errors"
kind = "rate"
level = ["ERROR", "FATAL"]
threshold = 3
"""


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tables_of(*minutes: int, level: str = "ERROR") -> None:
    """The tables of a log with a line in each of these minutes."""
    lines = [
        f"2026-03-10 10:{minute:02}:00,000 {level} [main] jobs.Nightly: Job {minute} failed\n"
        for minute in minutes
    ]
    Path("jobs.log").write_text("".join(lines), "utf-8")
    assert main(["report", "jobs.log", "--kind", "system", "--tables", "tables"]) == 0


def check(*more: str, rules: str = RULES, tables: str = "tables") -> int:
    Path("rules.toml").write_text(rules, "utf-8")
    return main(["alerts", "check", "--rules", "rules.toml", "--tables", tables, *more])


def test_lg_4_an_alert_that_is_firing(capsys: pytest.CaptureFixture[str]) -> None:
    """LG-4: the exit code is 3, and the lines are shown."""
    tables_of(1, 2, 3)
    capsys.readouterr()
    assert check() == 3
    out = capsys.readouterr().out
    assert "FIRING errors: 3 entries of level ERROR, FATAL in 5 minutes (threshold 3)" in out
    assert "| jobs.log, line 3: 2026-03-10 10:03:00 ERROR jobs.Nightly Job 3 failed" in out
    assert out.endswith("1 incident firing, 0 over\n")


def test_lg_4_none_is_firing(capsys: pytest.CaptureFixture[str]) -> None:
    tables_of(1, 2)
    assert check() == 0
    assert capsys.readouterr().out.endswith("0 incidents firing, 0 over\n")


def test_lg_4_one_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    tables_of(1, 2, 3, 40)
    assert check() == 0
    out = capsys.readouterr().out
    assert "2026-03-10 10:03:00 to 2026-03-10 10:06:00 UTC" in out
    assert out.endswith("0 incidents firing, 1 over\n")


@pytest.mark.thorough
def test_lg_4_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    tables_of(1, 2, 3)
    capsys.readouterr()
    assert check("--json") == 3
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["status"], found["alert"], found["ends_at"]) == ("firing", "errors", None)
    assert found["starts_at"] == "2026-03-10T10:03:00.000Z"
    assert len(found["lines"]) == 3


def test_lg_4_what_cannot_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """LG-4: the exit code is 1, and no secret is shown."""
    tables_of(1, 2, 3)
    sink = '[sink.x]\nkind = "webhook"\nurl = "http://127.0.0.1:9/SECRET?key=SECRET"\n'
    assert check("--send", rules=RULES + sink) == 1
    shown = capsys.readouterr()
    assert "sink 'x': http://127.0.0.1:9/...: Connection refused" in shown.err
    assert "0 notices sent" in shown.out
    assert "SECRET" not in shown.err + shown.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rules", "tables", "message"),
    [
        (RULES.replace("treshold", ""), "empty", "there are no tables in "),
        (RULES.replace("threshold", "treshold"), "tables", "did you mean threshold?"),
        (RULES.replace("rate", "error_share"), "tables", "alert 'errors': 'level' is unknown"),
        (
            '[[alert]]\nname = "e"\nkind = "error_share"\nshare = 0.1\n',
            "tables",
            "alert 'e': error_share is for access logs",
        ),
    ],
)
def test_ux_4_what_cannot_be_checked(
    rules: str, tables: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """UX-4: what, where, and what to do."""
    Path("empty").mkdir()
    tables_of(1)
    assert check(rules=rules, tables=tables) == 1
    assert message in capsys.readouterr().err


@pytest.mark.thorough
def test_lg_4_the_rules_of_the_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LG-4: the file in docs/alerts.md, as it stands there, over a log with all it looks for."""
    page = (CHECKOUT / "docs" / "alerts.md").read_text("utf-8")
    rules, _ = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    lines = [f"09:{minute:02}:00,000 INFO [main] jobs.Mailer: Mail sent" for minute in range(20)]
    lines += [
        f"10:{minute:02}:00,000 INFO [main] jobs.Run: Job {minute} done" for minute in range(50)
    ]
    lines += [f"10:50:{i:02},000 ERROR [main] jobs.Nightly: Job {i} failed" for i in range(50)]
    guesses = [
        f"2026-03-10T10:51:{i:02}.000000+00:00 gate sshd[7]: {what} password for root from"
        " 192.0.2.7 port 9 ssh2\n"
        for i, what in enumerate(["Failed"] * 5 + ["Accepted"])
    ]
    Path("logs").mkdir()
    Path("logs/jobs.log").write_text("".join(f"2026-03-10 {each}\n" for each in lines))
    Path("logs/auth.log").write_text("".join(guesses))
    Path("logs/bad.log").write_bytes(b"260231 101500 17 INFO a.B: c\n" * 100)
    assert main(["report", "logs", "--kind", "system", "--tables", "tables"]) == 0
    capsys.readouterr()
    with web_receiver() as receiver:
        monkeypatch.setenv("TEAM_HOOK", f"{receiver.url}/hook")
        rules = rules.replace("http://127.0.0.1:9093", receiver.url)
        assert check("--send", "--json", rules=rules) == 3
    found = {each["alert"] for each in json.loads(capsys.readouterr().out)}
    assert found == set(re.findall(r'^name = "(.*)"', rules, re.MULTILINE))
    paths = {each.path for each in receiver.posts}
    assert paths == {"/hook", "/api/v2/alerts"}


@pytest.mark.thorough
@pytest.mark.parametrize(("buyers", "code"), [(2, 3), (5, 0)])
def test_lg_4_the_funnel_of_the_page(
    buyers: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """LG-4: the rule in docs/alerts.md fires for a log with a drop, and for no other."""
    page = (CHECKOUT / "docs" / "alerts.md").read_text("utf-8")
    _, rules = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    visits = [
        f'192.0.2.{visitor} - - [10/Mar/2026:10:{minute:02}:{visitor:02} +0000] "GET {path}'
        ' HTTP/1.1" 200 9 "-" "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"\n'
        for minute, path, visitors in (
            (0, "/cart", 25),
            (2, "/checkout/address", 12),
            (5, "/thanks", buyers),
            (40, "/", 1),
        )
        for visitor in range(visitors)
    ]
    Path("access.log").write_text("".join(visits), "utf-8")
    assert main(["report", "access.log", "--kind", "access", "--tables", "tables"]) == 0
    capsys.readouterr()
    assert check(rules=rules) == code
    out = capsys.readouterr().out
    if code:
        shown = re.findall(r"```console\n(.*?)```", page, re.DOTALL)[-1]
        # The incident's lines depend on who did not go on, as on the page.
        assert out == shown.partition("--tables tables\n")[2].partition("--tables tables\n")[2]
    else:
        assert out == "0 incidents firing, 0 over\n"
