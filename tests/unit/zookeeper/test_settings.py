"""The settings of the ZooKeeper server."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas.zookeeper.settings import JAAS_CONFIG, ZooKeeperSettings, settings_from

JAAS = """
// a comment
Client { some.Module required; };
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_super="s \\"quoted\\""
    user_admin="a-secret";
};
"""


def parsed(**properties: str) -> tuple[ZooKeeperSettings, list[str]]:
    return settings_from({"dataDir": "d", **properties}, port=None, host=None, data_dir=None)


@pytest.fixture
def jaas(tmp_path: Path) -> Path:
    path = tmp_path / "jaas.conf"
    path.write_text(JAAS)
    return path


def test_the_users_are_read_and_never_printed(jaas: Path) -> None:
    settings, warnings = parsed(**{JAAS_CONFIG: str(jaas)})
    assert settings.login.users == {"super": 's "quoted"', "admin": "a-secret"}
    assert not warnings
    assert "secret" not in repr(settings)


def test_logins_are_required_only_if_clients_can_log_in(jaas: Path) -> None:
    with pytest.raises(ConfigError, match="no client could log in"):
        parsed(sessionRequireClientSASLAuth="true")
    settings, _ = parsed(**{JAAS_CONFIG: str(jaas), "sessionRequireClientSASLAuth": "true"})
    assert settings.login.required_schemes == ("sasl",)
    listed = {"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest, ip"}
    assert parsed(**listed)[0].login.required_schemes == ("digest", "ip")
    for schemes in ("", "x509"):
        with pytest.raises(ConfigError, match=r"enforce\.auth\.schemes"):
            parsed(**{**listed, "enforce.auth.schemes": schemes})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Client { m required; };", "no section Server"),
        ("Server { a.KerberosModule required; };", "the only login module"),
        ("Server { m required; }", "malformed"),
        ("Server { m required user_a=b };", "has no value|no name|malformed"),
        ("Server", "malformed"),
        ("Server {", "malformed"),
    ],
)
def test_a_file_without_users_is_refused(jaas: Path, text: str, reason: str) -> None:
    jaas.write_text(text)
    with pytest.raises(ConfigError, match=reason):
        parsed(**{JAAS_CONFIG: str(jaas)})


def test_security_that_is_missing_here_is_refused_or_mentioned() -> None:
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    assert parsed(**{"authProvider.1": provider})[1] == []
    with pytest.raises(ConfigError, match="the only provider"):
        parsed(**{"authProvider.1": "org.example.Other"})
    with pytest.raises(ConfigError, match="no TLS"):
        parsed(secureClientPort="2182")
    (warning,) = parsed(requireClientAuthScheme="sasl")[1]
    assert "sessionRequireClientSASLAuth=true" in warning


def test_the_words_are_those_of_the_list() -> None:
    key = "4lw.commands.whitelist"
    assert parsed()[0].words == {"conf", "mntr", "ruok", "srvr"}
    assert parsed(**{key: "stat, kill"})[0].words == {"stat", "srvr"}
    assert "wchc" in parsed(**{key: "*"})[0].words


def test_zs_3_a_file_that_names_one_server_describes_a_server_on_its_own() -> None:
    """Apache ZooKeeper's image writes such a file, and Java's server ignores its line, too."""
    settings, (warning,) = parsed(**{"server.1": "localhost:2888:3888;2182"})
    assert settings.port == 2181
    assert warning == (
        "server.1 has no effect here, because it names the only server; "
        "set the port for clients in clientPort"
    )
    assert "clientPort" not in parsed(clientPort="2182", **{"server.1": "a:1:2;2182"})[1][0]
    with pytest.raises(ConfigError, match=r"^server\.1: this server runs alone"):
        parsed(**{"server.1": "a:2888:3888", "server.2": "b:2888:3888"})
    for key in ("group.1", "dynamicConfigFile"):
        with pytest.raises(ConfigError, match=f"^{key}: this server runs alone"):
            parsed(**{key: "1:2"})


def test_ux_4_settings_without_effect_are_listed_once_and_typing_errors_one_by_one() -> None:
    usual = {"initLimit": "10", "syncLimit": "5", "autopurge.purgeInterval": "1"}
    assert parsed(**usual)[1] == ["initLimit, syncLimit have no effect here"]
    assert parsed(**{"admin.serverPort": "8080"})[1] == ["admin.serverPort has no effect here"]
    assert parsed(tickTmie="1", this="is no setting", skipACL="yes", **usual)[1] == [
        "initLimit, syncLimit have no effect here",
        "'tickTmie' is not a known setting and has no effect; did you mean tickTime?",
        "'this' is not a known setting and has no effect",
        "skipACL has no effect here: access rights are always checked",
    ]
