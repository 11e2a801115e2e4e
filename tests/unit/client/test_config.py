"""UX-3, PR-6: options have Kafka's names and defaults; what is wrong is an error."""

from __future__ import annotations

import logging
from typing import Any, get_type_hints

import pytest

from barnabas.client.config import (
    ClientConfig,
    ClientOptions,
    ConsumerConfig,
    ConsumerOptions,
    ProducerConfig,
    ProducerOptions,
    configure,
    parse_servers,
    split,
)
from barnabas.client.security.config import SecurityConfig
from barnabas.errors import ConfigError


@pytest.mark.parametrize(
    ("config", "options"),
    [(ProducerConfig, ProducerOptions), (ConsumerConfig, ConsumerOptions)],
)
def test_what_a_type_checker_sees_is_what_there_is(config: Any, options: Any) -> None:
    """The dictionaries of keyword arguments have the fields of the tuples, no more, no fewer."""
    common = {*ClientConfig._fields, *SecurityConfig._fields} - {"security"}
    assert set(get_type_hints(ClientOptions)) == common
    assert set(get_type_hints(options)) == common | set(config._fields)


def test_kafkas_spelling_and_text_are_accepted() -> None:
    """UX-3: as they stand in a properties file."""
    common, config = configure(
        ProducerConfig,
        {"batch.size": "100", "acks": "all", "enable.idempotence": "false", "client.id": "me"},
    )
    assert (config.batch_size, config.acks, config.enable_idempotence) == (100, -1, False)
    assert common.client_id == "me"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"batchsize": 1}, "unknown option batchsize; did you mean batch.size"),
        ({"colour": 1}, "unknown option colour$"),
        ({"batch_size": "much"}, "batch.size: 'much' is not a whole number"),
        ({"batch_size": True}, "batch.size: True is not a whole number"),
        ({"batch_size": -1}, "batch.size: -1 is less than 0"),
        ({"enable_idempotence": "yes"}, "enable.idempotence: 'yes' is not true or false"),
        ({"compression_type": "brotli"}, "'brotli' is not one of none, gzip, snappy, lz4, zstd"),
        ({"acks": 2}, "acks: 2 is not one of all, -1, 0, 1"),
        ({"client_id": 5}, "client.id: 5 is not text"),
        ({"partitioner": "best"}, "not one of sticky, round-robin, random-until-refresh"),
        ({"max_in_flight_requests_per_connection": 0}, "0 is less than 1"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], problem: str) -> None:
    """UX-3: the option, the value, and what would be right."""
    with pytest.raises(ConfigError, match=problem):
        configure(ProducerConfig, options)


CONFLICTS = [
    {"acks": 1},
    {"acks": 0},
    {"retries": 0},
    {"max_in_flight_requests_per_connection": 6},
]


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_idempotence_gives_way_unless_it_was_asked_for(
    conflict: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """PR-6: by default with a log line; next to an explicit wish it is an error."""
    assert configure(ProducerConfig, {})[1].enable_idempotence
    with caplog.at_level(logging.INFO):
        assert not configure(ProducerConfig, conflict)[1].enable_idempotence
    assert "enable.idempotence" in caplog.text
    with pytest.raises(ConfigError, match=r"enable\.idempotence=true conflicts with"):
        configure(ProducerConfig, {**conflict, "enable_idempotence": True})
    assert not configure(ProducerConfig, {**conflict, "enable_idempotence": False})[
        1
    ].enable_idempotence


def test_pr_3_a_record_has_the_time_to_linger_and_for_one_request() -> None:
    """As Kafka has it: an explicit delivery.timeout.ms is refused, the default one is raised."""
    least = {"linger.ms": "100", "request.timeout.ms": "400"}
    assert configure(ProducerConfig, least | {"delivery.timeout.ms": 500})[1] is not None
    problem = r"delivery.timeout.ms: 499 is less than linger.ms \+ request.timeout.ms, 100 \+ 400"
    with pytest.raises(ConfigError, match=problem):
        configure(ProducerConfig, least | {"delivery.timeout.ms": 499})
    with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms: 29999 is less than"):
        configure(ProducerConfig, {"delivery_timeout_ms": 29_999})
    for given, raised in [(119_999, 120_000), (120_001, 120_001), (2**31 - 1, 2**31 - 1)]:
        options = {"linger_ms": 1, "request_timeout_ms": given - 1}
        assert configure(ProducerConfig, options)[1].delivery_timeout_ms == raised


@pytest.mark.parametrize("kind", [ProducerConfig, ConsumerConfig])
def test_none_is_as_if_the_option_were_not_given(kind: Any) -> None:
    """UX-3: other clients have it as their default."""
    names = {*ClientConfig._fields, *kind._fields, *SecurityConfig._fields} - {"security"}
    assert configure(kind, dict.fromkeys(names)) == configure(kind, {})
    with pytest.raises(ConfigError, match="unknown option colour"):
        configure(kind, {"colour": None})
    _, given = split({"client.id": "mine", "bootstrap.servers": "a:1"}, {"client_id": None})
    assert given == {"client_id": "mine"}


def test_addresses() -> None:
    """PR-9."""
    assert parse_servers("a:1, b:2 ,") == [("a", 1), ("b", 2)]
    assert parse_servers(["[::1]:9092"]) == [("::1", 9092)]
    both = [("a", 1), ("::1", 2)]
    assert parse_servers("PLAINTEXT://a:1,sasl_ssl://[::1]:2") == both, "as Kafka's clients do"
    for wrong in ("", "a", "a:0", ":1", "a:70000", "a:1,b", "http://a:1", "SSL://:1", "://a:1"):
        with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
            parse_servers(wrong)


def test_options_of_groups_fit_together() -> None:
    """CO-4, AS-1, PR-7: what is only for groups, and what must be less than what."""
    _, config = configure(
        ConsumerConfig,
        {"group.id": "g", "partition.assignment.strategy": ["sticky", "range"]},
    )
    assert (config.partition_assignment_strategy, config.enable_auto_commit) == (
        "sticky,range",
        True,
    )
    _, alone = configure(ConsumerConfig, {})
    assert not alone.enable_auto_commit, "there is no group to commit for"
    for options, complaint in (
        ({"enable_auto_commit": True}, r"enable\.auto\.commit needs a consumer group"),
        ({"group_instance_id": "blue"}, r"group\.instance\.id needs a consumer group"),
        ({"group_id": "g", "session_timeout_ms": 3_000}, r"3000 is not less than session"),
        ({"group_id": "g", "max_poll_interval_ms": 0}, r"max\.poll\.interval\.ms: 0 is less"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            configure(ConsumerConfig, options)
    with pytest.raises(ConfigError, match=r"conflicts with enable\.idempotence=false"):
        configure(ProducerConfig, {"transactional_id": "t", "enable_idempotence": False})


A, B = "a:1", "b:2"


@pytest.mark.parametrize(
    ("servers", "options"),
    [
        (A, {"batch.size": 5}),
        (A, {"batch_size": 5}),
        ({"bootstrap.servers": A, "batch.size": 5}, {}),
        ({"bootstrap_servers": A, "batch_size": 5}, {}),
        (None, {"bootstrap.servers": A, "batch.size": 5}),
        ({"bootstrap.servers": B, "batch.size": "7"}, {"bootstrap_servers": A, "batch_size": 5}),
    ],
)
def test_options_come_as_a_mapping_as_keywords_or_mixed(
    servers: Any, options: dict[str, Any]
) -> None:
    """UX-3: keywords prevail over a mapping, as in a file of defaults."""
    assert split(servers, options) == (A, {"batch_size": 5})


@pytest.mark.parametrize(
    ("servers", "options", "problem"),
    [
        (None, {}, "bootstrap.servers is missing; give HOST:PORT"),
        ({"acks": "all"}, {}, "bootstrap.servers is missing"),
        (A, {"bootstrap.servers": B}, "bootstrap.servers is set twice"),
        (A, {"batch.size": 1, "batch_size": 2}, "batch.size is set twice"),
        ({5: 1}, {}, "5 is not the name of an option"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    servers: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        split(servers, options)


def test_kafkas_options_without_an_effect_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    """UX-3: a properties file goes in as it is, and says what does nothing here."""
    options = {"security.protocol": "plaintext", "send.buffer.bytes": "131072", "linger.ms": "5"}
    with caplog.at_level(logging.WARNING):
        assert configure(ProducerConfig, options)[1].linger_ms == 5
    assert [record.getMessage() for record in caplog.records] == [
        "options that have no effect in this client: send.buffer.bytes"
    ]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("security.protocol", "SALS_SSL", "'SALS_SSL' is not one of PLAINTEXT, SSL"),
        ("sasl.jaas.config", "secret", r"sasl\.jaas\.config is set, but .* has no authentication"),
        ("sasl.login.class", "a.B", r"sasl\.login\.class: 'a.B' is not supported"),
        ("ssl.unheard.of", "1", "remove the option"),
        ("ssl.ca.location", "/ca.pem", r"set ssl\.truststore\.location"),
        ("partitioner.ignore.keys", True, "True is not supported; only false is"),
    ],
)
def test_an_option_that_would_change_security_is_refused(
    name: str, value: object, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        configure(ProducerConfig, {name: value})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("wrong", [5, b"a:1", {"a:1"}])
def test_servers_of_a_wrong_type_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers: must be text or a list"):
        parse_servers(wrong)
