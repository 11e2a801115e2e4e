"""Kafka's JAAS lines: what is understood, and errors that name the setting and no secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ConfigError
from barnabas.security.jaas import check_mechanism, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SETTING = "listener.name.in.plain.sasl.jaas.config"
SECRET = "planted-secret-7"


def test_se_3_a_line_of_a_broker_has_its_own_user_and_its_clients() -> None:
    module = parse_jaas(
        SETTING,
        f'{PLAIN} required\n username="broker" password="b, \\"quoted\\" = ;"\n'
        "  user_alice='a' user_bob=b-secret_1.$ ; // a comment",
    )
    assert module.name == PLAIN
    assert module.options["password"] == 'b, "quoted" = ;'
    assert module.users == {"alice": "a", "bob": "b-secret_1.$"}
    assert module.mechanisms == ("PLAIN",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no login module"),
        (PLAIN, "no login module"),
        (f"{PLAIN} required", "semicolon at its end"),
        (f"{PLAIN} perhaps;", "must be one of required"),
        (f"{PLAIN} required username={SECRET}", "semicolon at its end"),
        (f'{PLAIN} required password "{SECRET}";', "option 1 has no value"),
        (f'{PLAIN} required password="{SECRET}" = ;', "no name"),
        (f'{PLAIN} required password="{SECRET}" password="{SECRET}";', "repeats a name"),
        (f'{PLAIN} required password="{SECRET};', "unexpected character"),
        (f'{PLAIN} required password="{SECRET}"; {PLAIN} required;', "one module"),
        (f'com.example.LoginModule required password="{SECRET}";', "com.example.LoginModule is"),
        (f'com.sun.security.auth.module.Krb5LoginModule required x="{SECRET}";', "not supported"),
        (f"{SECRET} required;", "of that name is not supported"),
        (
            f"{PLAIN} required a=\N{GREEK SMALL LETTER ALPHA}{SECRET}\N{EURO SIGN};",
            "unexpected character",
        ),
    ],
)
def test_se_3_what_is_malformed_names_the_setting_and_shows_no_secret(
    text: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as error:
        parse_jaas(SETTING, text)
    assert str(error.value).startswith(f"{SETTING}: ")
    assert SECRET not in str(error.value)


def test_se_3_a_module_is_for_its_mechanisms_and_hides_its_options() -> None:
    module = parse_jaas(SETTING, f'{SCRAM} required username="u" password="{SECRET}";')
    check_mechanism(SETTING, module, "SCRAM-SHA-512")
    with pytest.raises(ConfigError, match=r"is for SCRAM-SHA-256 and SCRAM-SHA-512.* is PLAIN"):
        check_mechanism(SETTING, module, "PLAIN")
    assert SECRET not in repr(module)


@given(st.dictionaries(st.from_regex(r"[A-Za-z_]\w{0,9}", fullmatch=True), st.text(max_size=20)))
def test_se_3_any_value_survives_its_quotes(options: dict[str, str]) -> None:
    options = {
        name: value for name, value in options.items() if name.isascii() and "\n" not in value
    }
    written = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    assert dict(parse_jaas(SETTING, f"{PLAIN} required {written};").options) == options


def quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@given(st.text(alphabet="ab.=;\"'\\/*# \n", max_size=40))
def test_se_3_no_text_does_more_than_fail(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_jaas(SETTING, f"x.y.Z required {text}")
