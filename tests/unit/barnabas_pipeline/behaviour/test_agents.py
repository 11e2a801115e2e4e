"""What user agents say, and the tables that count them and what was not found."""

from __future__ import annotations

import polars as pl
import pytest

from barnabas_pipeline.behaviour import counts, lines
from barnabas_pipeline.behaviour.agents import NO_AGENT, Agent, agent_of, parse_agents
from barnabas_pipeline.behaviour.schemas import AGENTS, MISSING
from tests.kit.pipeline.web_records import line, record, table

MOZILLA = "Mozilla/5.0"
CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/122.0.0.0"
IPHONE = "(iPhone; CPU iPhone OS 17_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
IE = "Internet Explorer"


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (f"(Windows NT 10.0; Win64) {CHROME} Safari/537.36", "Chrome, Windows, Computer"),
        (f"(Linux; Android 10; K) {CHROME} Mobile Safari/1", "Chrome Mobile, Android, Phone"),
        (f"(Linux; Android 13; SM-X700) {CHROME} Safari/1", "Chrome, Android, Tablet"),
        (f"{IPHONE} Version/17.3 Mobile/1 Safari/604.1", "Mobile Safari, iOS, Phone"),
        ("(compatible; MSIE 8.0; Windows NT 6.1; Tablet PC 2.0)", f"{IE}, Windows, Computer"),
        ("(Macintosh; Intel Mac OS X 10.9) Gecko/1 Firefox/27.0", "Firefox, macOS, Computer"),
        ("", "None, None, None"),
    ],
)
def test_browser_system_and_device(text: str, described: str) -> None:
    assert ", ".join(map(str, agent_of(f"{MOZILLA} {text}", is_robot=False))) == described


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{MOZILLA} (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"),
        (f"{MOZILLA} {IPHONE} (compatible; Googlebot/2.1)", "Googlebot"),
        (f"{MOZILLA} (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "bingbot"),
        (f"{MOZILLA} (compatible; Ezooms/1.0; help@moz.com)", "Ezooms"),
        (f"{MOZILLA} zgrab/0.x", "zgrab"),
        ("Feedly/1.0 (+http://www.feedly.com/fetcher.html)", "Feedly"),
        ("curl/8.5.0", "curl"),
        ("python-requests/2.31.0", "Python Requests"),
        ("(;)", "(;)"),
        ("x" * 200, "x" * 40),
        (None, NO_AGENT),
    ],
)
def test_robots_by_name(text: str | None, name: str) -> None:
    assert agent_of(text, is_robot=True) == Agent(name)


def test_portions_of_hits_count_as_all_of_them() -> None:
    """The tables are sums: what a batch brings is added."""
    agents = ["curl/8.5.0", "-", f"{MOZILLA} (X11; Linux x86_64; rv:24.0) Gecko Firefox/24.0"]
    rows = []
    for i in range(60):
        referrer = f"https://example.org/a?b={i}#c" if i % 5 else "-"
        status = 404 if i % 4 else 200
        hit = line(agent=agents[i % 3], path=f"/{i % 2}", status=status, referrer=referrer)
        rows.append(record(hit, i))
    for name, schema in (("agents", AGENTS), ("missing", MISSING)):
        whole = counts.add_up(counted(rows)[name], schema.names)
        parts = pl.concat([counted(rows[i::3])[name] for i in range(3)])
        assert set(counts.add_up(parts, schema.names).rows()) == set(whole.rows())
    found = counted(rows)
    assert found["agents"]["hits"].sum() == 60
    assert set(found["agents"].select("name", "robot", "system", "pages").rows()) == {
        ("curl", True, None, 5),
        (NO_AGENT, True, None, 5),
        ("Firefox", False, "Linux", 5),
    }
    assert found["missing"].select(pl.col("hits", "robot_hits").sum()).row(0) == (45, 30)
    assert set(found["missing"]["referrer"]) == {"https://example.org/a", None}


def test_described_keeps_what_it_was_given() -> None:
    given = pl.DataFrame({"agent": ["curl/8.5.0", None], "robot": [True, True]})
    assert parse_agents(given).select("agent", "robot").equals(given)
    assert parse_agents(given[:0]).height == 0


def counted(rows: list[tuple[object, ...]]) -> dict[str, pl.DataFrame]:
    hits = lines.events(lines.classify(table(rows), {}))
    host = pl.lit(None, pl.String).alias("host")
    return counts.count_hits(hits.with_columns(pl.lit(None, pl.Date).alias("day"), host))
