"""UX-2, UX-3: what `configs describe` says. (Beside kafka-configs.sh: integration tests.)"""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from barnabas.cli.configs.text import (
    describe_configs_text,
    describe_configs_values,
    explain_text,
    shown_entries,
)
from barnabas.cli.tables import show_configs
from barnabas.client.admin.configs import (
    BROKER,
    DEFAULT_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigEntry,
    ConfigResource,
    ConfigSynonym,
)
from barnabas.config import BROKER_KEYS, TOPIC_KEYS
from barnabas.errors import ConfigError

TEST = ConfigResource(TOPIC, "test")
RETENTION = ConfigEntry(
    "retention.ms",
    "1000",
    DYNAMIC_TOPIC_CONFIG,
    False,
    False,
    "long",
    (
        ConfigSynonym("retention.ms", "1000", DYNAMIC_TOPIC_CONFIG),
        ConfigSynonym("log.retention.hours", "168", DEFAULT_CONFIG),
    ),
    "How long.",
)
SECRET = ConfigEntry("a.password", None, DEFAULT_CONFIG, True, True, "password", (), None)


def test_kafkas_lines() -> None:
    entries = shown_entries(TEST, [RETENTION, SECRET], False)
    assert describe_configs_text(TEST, entries, False) == (
        "Dynamic configs for topic test are:\n"
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000, "
        "DEFAULT_CONFIG:log.retention.hours=168}\n"
    )
    entries = shown_entries(TEST, [RETENTION, SECRET], True)
    assert describe_configs_text(TEST, entries, True).splitlines()[:2] == [
        "All configs for topic test are:",
        "  a.password=null sensitive=true synonyms={}",
    ]


def test_what_is_set_for_all_brokers_has_a_heading_of_its_own() -> None:
    resource = ConfigResource(BROKER, "")
    entry = RETENTION._replace(source=DYNAMIC_DEFAULT_BROKER_CONFIG, synonyms=())
    assert describe_configs_text(
        resource, shown_entries(resource, [entry, RETENTION], False), False
    ) == (
        "Default configs for brokers in the cluster are:\n"
        "  retention.ms=1000 sensitive=false synonyms={}\n"
    )


def test_values_have_the_documentation() -> None:
    (values,) = describe_configs_values([RETENTION])
    assert values["documentation"] == "How long."
    assert values["synonyms"][1]["source"] == "DEFAULT_CONFIG"


def test_a_terminal_gets_a_table_without_secrets() -> None:
    """SE-6 holds for whatever a broker sends."""
    written = io.StringIO()
    console = Console(file=written, width=200, highlight=False)
    show_configs(TEST, [SECRET._replace(value="hunter2"), RETENTION], True, console)
    assert "hunter2" not in written.getvalue() and "(hidden)" in written.getvalue()
    assert "How long." in written.getvalue()
    show_configs(TEST, [], False, console)
    assert written.getvalue().endswith("none\n")


def test_every_config_can_be_explained() -> None:
    """UX-3: name, type, default and a sentence."""
    for name in {*TOPIC_KEYS, *BROKER_KEYS}:
        text = explain_text(name)
        assert text.startswith(name)
        assert "  type: " in text and "  default: " in text
        assert (TOPIC_KEYS.get(name) or BROKER_KEYS[name]).doc in text


def test_what_is_no_config_has_a_near_name() -> None:
    with pytest.raises(ConfigError, match=r"did you mean retention\.ms"):
        explain_text("retentoin.ms")
    with pytest.raises(ConfigError, match="no config has a similar name"):
        explain_text("")


def test_the_begin_of_a_name_finds_the_config_or_all_that_begin_so() -> None:
    """UX-3"""
    assert explain_text("min.insync") == explain_text("min.insync.replicas")
    names = [line for line in explain_text("retention.").splitlines() if line[0] != " "]
    assert names == ["retention.bytes", "retention.ms"]
    assert TOPIC_KEYS["retention.ms"].doc in explain_text("retention.")
