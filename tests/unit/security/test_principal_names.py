"""SE-2: `ssl.principal.mapping.rules`, as Kafka's SslPrincipalMapper applies them."""

from __future__ import annotations

import pytest

from barnabas.errors import ConfigError
from barnabas.security.principal_names import NoRuleMatches, PrincipalNames

ALICE = "CN=Alice,OU=Sales,O=Acme,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", ALICE),
        ("DEFAULT", ALICE),
        (r"RULE:^CN=(.*?),.*$/$1/", "Alice"),
        (r"RULE:^CN=(.*?),.*$/$1/L", "alice"),
        (r"RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "ALICE@SALES"),
        (r"RULE:^CN=(.*?),OU=None.*$/$1/, RULE:^CN=(.*?),.*$/$1-second/, DEFAULT", "Alice-second"),
        (r"RULE:^OU=.*$/never/,DEFAULT", ALICE),
        (r"RULE:^CN=(?<who>\w+),.*$/${who}/", "Alice"),
        (r"RULE:^.*O=(.*?),C=(.*)$/$1\/$2\$1/", "Acme/DE$1"),
        (r"RULE:^CN=(.*?),.*$/$1$2/", "Alice$2"),
        (r"RULE:^CN=(.*?),.*$/$12/", "Alice2"),
        (r"RULE:^.*$/x\.y/", "x.y"),
        (r"RULE:.*/x/", "xx"),  # as Java's replaceAll, which also matches the empty rest
    ],
)
def test_se_2_the_first_rule_that_matches_decides(rules: str, name: str) -> None:
    assert PrincipalNames(rules).name_of(ALICE) == name


def test_se_2_a_name_without_a_rule_is_nobody() -> None:
    with pytest.raises(NoRuleMatches, match="Alice"):
        PrincipalNames(r"RULE:^OU=(.*)$/$1/").name_of(ALICE)


def test_se_2_a_rule_is_for_the_whole_name() -> None:
    with pytest.raises(NoRuleMatches):
        PrincipalNames(r"RULE:CN=Alice/alice/").name_of(ALICE)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ("default", "does not begin with DEFAULT"),
        ("RULE:^CN=(.*)$", "does not begin with DEFAULT"),
        ("RULE:^CN=(.*)$/$1/X", "does not begin with DEFAULT"),
        ("RULE:^CN=(.*)$/$1/L/U", "does not begin with DEFAULT"),
        ("RULE:^CN=(.*$/$1/", "is no regular expression"),
        ("DEFAULT RULE:a/b/", "does not begin with DEFAULT"),
    ],
)
def test_se_2_a_wrong_rule_is_refused_with_its_text(rules: str, says: str) -> None:
    with pytest.raises(ConfigError, match=f"ssl.principal.mapping.rules: .*{says}"):
        PrincipalNames(rules)
