"""Robots by their agents: our words and a maintained list, column by column (SP-2)."""

from __future__ import annotations

import polars as pl
import pytest
from crawlerdetect import CrawlerDetect  # type: ignore[import-untyped]

from barnabas_pipeline.behaviour import robots
from barnabas_pipeline.behaviour.robots import are_robots, is_robot
from barnabas_pipeline.behaviour.site import BROWSERS, ROBOTS

AGENTS = (
    *("kube-probe/1.29", "ELB-HealthChecker/2.0", "GoogleHC/1.0", "Prometheus/2.53.0", "Zabbix"),
    *("axios/1.6.0", "GuzzleHttp/7", "node-fetch", "node", "undici", "Go-http-client/2.0"),
    *("Dart/3.2 (dart:io)", "PostmanRuntime/7.36.1", "okhttp/4.12", "Java/17.0.2", "PHP/8.3"),
    *("Blackbox Exporter/0.24.0", "Consul Health Check", "Envoy/HC", "AzureTrafficManager"),
    *("Amazon-Route53-Health-Check-Service (ref 1)", "check_http/v2.3.3 (nagios-plugins 2.3.3)"),
    *(
        "reqwest/0.11",
        "RestSharp/110",
        "Faraday v2.7",
        "ApacheBench/2.3",
        "Grafana k6/1.0",
        "Deno/1.4",
    ),
    *("GPTBot/1.0", "sqlmap/1.8", "python-httpx/0.26", "Wget/1.21", "HTTPie/3.2", "Datadog/1"),
    *(robot.agent for robot in ROBOTS),
)
PEOPLE = (
    *BROWSERS[0],
    "Mozilla/5.0 (Linux; Android 11; CUBOT X30) Chrome/90.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) [FBAN/FBIOS;FBAV/440.0]",
    "Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18",
    "Lynx/2.9.0",
    "",
)


@pytest.mark.parametrize("agent", [*AGENTS, None])
def test_sp_2_health_checks_libraries_and_crawlers_are_robots(agent: str | None) -> None:
    assert is_robot(agent)


@pytest.mark.parametrize("agent", PEOPLE)
def test_sp_2_a_browser_is_a_person(agent: str) -> None:
    assert not is_robot(agent)


def test_the_list_is_that_of_the_package() -> None:
    """Polars finds what the package finds, one agent at a time."""
    listed = CrawlerDetect()
    both = pl.Series([*AGENTS, *PEOPLE, "008/0.83", "Ruby", "a Ruby/2", "Zend_Http_Client"])
    found = robots.are_listed(both)
    assert found.to_list() == [bool(listed.is_crawler(agent)) for agent in both]
    assert 0 < found.sum() < len(both)


def test_a_column_may_have_any_agents() -> None:
    column = pl.Series(["curl/8", None, "Lynx/2", "curl/8"], dtype=pl.String)
    assert are_robots(column).to_list() == [True, True, False, True]
    assert are_robots(column.clear()).to_list() == []
    assert are_robots(pl.Series([None], dtype=pl.String)).to_list() == [True]


@pytest.mark.thorough
def test_more_agents_than_are_remembered_are_classified() -> None:
    for start in (0, 1):
        many = pl.Series([f"Lynx/{number}" for number in range(start, robots.MOST_KEPT)])
        assert not are_robots(many).any()
        assert are_robots(pl.Series(["curl/8", "Lynx/1"])).to_list() == [True, False]
