"""Templates: what is masked, what is learnt, and that ids outlive restarts (SP-2)."""

from __future__ import annotations

import pickle

import polars as pl
import pytest

from barnabas.pipeline.logs import templates
from barnabas.pipeline.logs.masks import masked
from barnabas.pipeline.logs.templates import Template, Templates

LOGINS = [f"Failed password for {user} from <ip> port <num>" for user in ("root", "k", "olga")]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("to /10.251.39.209:50010, 1.2.3.4,5.6.7.8 x", "to <ip>, <ip> x"),
        ("block blk_-6952295868487656571 of 67108864", "block <id> of <num>"),
        ("[instance: b9000564-fe1a-409b-b8cc-1e88b294cd1d] up", "[instance: <id>] up"),
        ('"GET /v2/54fad/servers HTTP/1.1" in 0.24', '"GET <path> HTTP/<num>" in <num>'),
        ("at 0x4ede and deadbeefdeadbeefdead", "at <hex> and <hex>"),
        ("from -5 to +7.25 (3)", "from <num> to <num> (<num>)"),
        ("utf8 ssh2 x86_64", "utf8 ssh2 x86_64"),
    ],
)
def test_what_is_masked(message: str, expected: str) -> None:
    found = pl.DataFrame({"message": [message]}).select(masked(pl.col("message")))
    assert found.item() == expected


def test_a_template_becomes_more_general_and_keeps_its_id() -> None:
    known = Templates()
    found = [known.learn("syslog", message) for message in LOGINS]
    assert len({each.id for each in found if each}) == 1
    assert found[0] and found[0].text == LOGINS[0]
    assert found[-1] and found[-1].text == "Failed password for <*> from <ip> port <num>"
    assert found[-1].wildcards == 1
    assert known.find("syslog", LOGINS[0].replace("root", "anybody")) == found[0].id
    assert known.find("hdfs", LOGINS[0]) is None, "of another format"
    assert known.find("syslog", "Failed password for root") is None


def test_sp_2_templates_that_are_stored_are_the_same_templates() -> None:
    """SP-2: what is found and learnt after a restart is what would have been without one."""
    messages = [f"{a} of {b} {c}" for a in "xyz" for b in ("one", "two") for c in ("up", "down")]
    messages += LOGINS
    straight, restarted = Templates(), Templates()
    stored: dict[str, Template] = {}
    for message in messages:
        expected = straight.learn("f", message)
        found = restarted.learn("f", message)
        assert found == expected and found is not None
        stored[found.id] = found
        restarted = pickle.loads(pickle.dumps(Templates(stored.values())))
    for message in messages:
        assert restarted.find("f", message) == straight.find("f", message) is not None


def test_ux_4_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST", 3)
    known = Templates()
    found = [known.learn("f", f"{word} {word}") for word in ("a", "b", "c", "d")]
    assert [each is not None for each in found] == [True, True, True, False]
    assert known.find("f", "a a") is not None
    assert known.learn("g", "another format") is not None
