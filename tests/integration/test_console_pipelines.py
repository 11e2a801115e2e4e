"""IN-6: `barnabas console --pipeline` shows what real reports have written."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas
from barnabas.console.pipeline_shapes import Pipelines
from barnabas_pipeline.pages.shapes import Site
from tests.kit.processes.chromium import opened
from tests.kit.processes.command_line import COMMAND
from tests.kit.processes.web_console import WebConsole, web_console

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

HIT = '10.0.0.7 - - [27/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 9 "-" "Mozilla/5.0"\n'
ENTRY = "Nov 27 10:00:00 web sshd[7]: Accepted password for alice from 10.0.0.7 port 22 ssh2\n"
SCRIPT = "<script>document.title = 'broken into'; parent.document.title = 'broken into'</script>"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Those of an access log with two bad lines, of a system log, and one that is empty."""
    found = [tmp_path_factory.mktemp(name) for name in ("site", "system", "empty")]
    logs = tmp_path_factory.mktemp("logs")
    hits = HIT * 13 + HIT.replace("GET /", "GET /priced") * 7
    (logs / "access.log").write_text(hits + "garbage\n" * 2)
    (logs / "system.log").write_text(ENTRY * 5)
    site, system, _ = found
    for words in (
        ["access.log", "-o", str(site / "report.html"), "--tables", str(site / "tables")],
        ["system.log", "-o", str(system / "report.html"), "--kind", "system"],
    ):
        subprocess.run([COMMAND, "report", *words], cwd=logs, check=True, timeout=300)
    page = system / "report.html"
    page.write_text(page.read_text().replace("</body>", f"{SCRIPT}</body>"))
    (system / "secret.html").symlink_to("/etc/passwd")
    return found


@pytest.fixture(scope="module")
def console(folders: list[Path]) -> Iterator[WebConsole]:
    words = [word for folder in folders for word in ("--pipeline", str(folder))]
    with barnabas.Broker() as broker, web_console(broker.bootstrap_servers, *words) as running:
        yield running


def test_in_6_each_pipeline_has_its_account(console: WebConsole) -> None:
    found: Pipelines = console.get("/api/pipelines", Pipelines)
    assert found["folders"] == 3
    site, system, link, empty = found["pipelines"]
    assert (site["read"], site["valid"], site["rejected"], site["balances"]) == (22, 20, 2, True)
    assert site["reasons"] == [{"reason": "not an access log line", "records": 2}]
    assert site["made_at"] and site["batch_at"] and site["made_at"] >= site["batch_at"] - 1_000
    assert (system["read"], system["rejected"], system["batch_at"]) == (5, 0, None)
    assert "symbolic link" in link["problem"]
    assert "has no page yet" in empty["problem"]


def test_in_6_a_page_is_served_in_a_sandbox_without_scripts(console: WebConsole) -> None:
    answer = console.ask("/pipelines/0/report.html")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-downloads; default-src 'none'; style-src")
    assert "script" not in policy and "frame-ancestors 'self'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    figures = console.ask("/pipelines/0/report-data/pages.csv")
    assert (figures.status, figures.headers["content-type"][:8]) == (200, "text/csv")


@pytest.mark.parametrize(
    "path",
    [
        "/pipelines/0/../1/report.html",
        "/pipelines/0/%2e%2e/system/report.html",
        "/pipelines/0/..%2freport.html",
        "/pipelines/0//etc/passwd",
        "/pipelines/0/%2Fetc%2Fpasswd",
        "/pipelines/0/report-data/..%2f..%2fx.html",
        "/pipelines/0/report.html%00.html",
        "/pipelines/0/tables/control/_delta_log/00000000000000000000.json",
        "/pipelines/1/secret.html",
        "/pipelines/9/report.html",
        "/pipelines/-1/report.html",
        "/pipelines/%C2%B2/report.html",
    ],
)
def test_in_6_nothing_else_is_served(console: WebConsole, path: str) -> None:
    answer = console.ask(path)
    assert answer.status == 404 and answer.json["error"]
    assert b"root:" not in answer.body


def test_in_6_the_tables_are_explored_below_an_address_of_their_own(console: WebConsole) -> None:
    rows = console.get("/api/pipelines", Pipelines)["pipelines"]
    assert [row["explore"] for row in rows] == ["explore/0/", "", "", ""]
    moved = console.ask("/explore/0")
    assert (moved.status, moved.headers["location"]) == (307, "0/")
    page = console.ask("/explore/0/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert console.ask("/explore/0/console/base.css").status == 200
    site = console.get("/explore/0/api/site", Site)
    assert (site["kind"], site["has_now"]) == ("access", True)
    with console.follow("/explore/0/api/now/stream") as found:
        assert "there is no topic 'web-access'" in next(found)["problem"]


def test_in_6_the_guard_also_protects_the_explored_tables(console: WebConsole) -> None:
    place = "/explore/0/api/site"
    assert console.ask(place).headers["cache-control"] == "no-store"
    assert console.ask(place, Sec_Fetch_Site="cross-site").status == 403
    assert console.ask(place, Host="evil.example").status == 403
    assert console.ask(place, "POST").status == 405
    without = console.ask("/explore/1/api/site")
    assert without.status == 404 and "no tables in" in without.json["error"]
    for path in ("/explore/9/", "/explore/-1/", "/explore/0/static/..%2fserver.py", "/explore/x/"):
        assert console.ask(path).status == 404, path


def test_in_6_tables_with_a_link_are_not_explored(folders: list[Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0] / "tables", tmp_path / "tables")
    (tmp_path / "tables" / "events" / "more.parquet").symlink_to("/etc/passwd")
    with (
        barnabas.Broker() as broker,
        web_console(broker.bootstrap_servers, "--pipeline", str(tmp_path)) as console,
    ):
        answer = console.ask("/explore/0/api/site")
    assert answer.status == 404 and "links are not followed" in answer.json["error"]


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_in_6_the_page_is_shown_within_the_console(
    browser: Browser, console: WebConsole, width: int, scheme: str
) -> None:
    with opened(browser, width, scheme) as page:
        page.goto(f"http://localhost:{console.port}/#/pipelines")
        page.get_by_text("not an access log line").wait_for()
        page.get_by_text("has no page yet").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.get_by_role("link", name="report.html").first.click()
        page.frame_locator("iframe").locator("h1").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_in_6_a_click_in_the_console_leads_to_the_explored_tables(
    browser: Browser, console: WebConsole
) -> None:
    with opened(browser, 1400, "light") as page:
        page.goto(f"http://localhost:{console.port}/#/pipelines")
        page.get_by_role("link", name="Explore").click()
        heading = page.get_by_role("heading", name="Pages", exact=True)
        card = page.locator("section", has=heading)
        card.get_by_role("button", name="/priced").click()
        page.wait_for_url(f"http://localhost:{console.port}/explore/0/#/?page=%2Fpriced")
        page.locator(".matching").get_by_text("7 hits").wait_for()
        page.get_by_role("link", name="Now").click()
        page.get_by_text("there is no topic 'web-access'").wait_for()


def test_in_6_a_script_in_a_page_does_not_run(browser: Browser, console: WebConsole) -> None:
    context = browser.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"http://localhost:{console.port}/#/pipelines/1/report.html")
    page.frame_locator("iframe").locator("h1").wait_for()
    assert "broken into" not in page.title()
    assert any("Blocked script execution" in text for text in said), said
    context.close()
