"""Templates: what is masked, what is learnt, and that ids outlive restarts (SP-2)."""

from __future__ import annotations

import pickle

import polars as pl
import pytest

from barnabas_pipeline.logs import templates
from barnabas_pipeline.logs.masks import mask_variables
from barnabas_pipeline.logs.templates import Template, Templates

LOGINS = [f"Failed password for {user} from <ip> port <num>" for user in ("root", "k", "olga")]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("to /10.251.39.209:50010, 1.2.3.4,5.6.7.8 x", "to <ip>, <ip> x"),
        ("block blk_-6952295868487656571 of 67108864", "block <id> of <num>"),
        ("عدد ٧٣ 数 ７.５", "عدد <num> 数 <num>"),
        ("[instance: b9000564-fe1a-409b-b8cc-1e88b294cd1d] up", "[instance: <id>] up"),
        ('"GET /v2/54fad/servers HTTP/1.1" in 0.24', '"GET <path> HTTP/<num>" in <num>'),
        ("at 0x4ede and deadbeefdeadbeefdead", "at <hex> and <hex>"),
        ("from -5 to +7.25 (3)", "from <num> to <num> (<num>)"),
        ("took 1m30.5s or 2d3h or 5 ms", "took <num> or <num> or <num> ms"),
        ("10.5KiB/s, 24M->5M(128M), 325407K", "<num>/s, <num>-><num>(<num>), <num>"),
        ("fe80::1%eth0 ::1 [::1]:80 2001:db8:1::a1", "<ip> <ip> [<ip>]:<num> <ip>"),
        ("::ffff:10.0.0.1 2001:db8::/32 1:2:3:4:5:6:7:b", "<ip> <ip>/<num> <ip>"),
        ("52:54:00:ab:cd:ef 00-1A-2B-3C-4D-5E", "<mac> <mac>"),
        ("<a.b7@example.org>, to=x+y@mail.x.de", "<<mail>>, to=<mail>"),
        ("loss 1.5e-05 1e5 1E10 -2.5E+3", "loss <num> <num> <num> <num>"),
        ("at 1a2b3c4 (9f8e7d6) DEADBEE1", "at <hex> (<hex>) <hex>"),
        ("'module12' \"x12y\" `m-7` 'a1b2'", "'module<num>' \"x<num>y\" `m-<num>` '<id>'"),
        ("2025-10-10T10:00:00.123+02:00, 20251010T101010Z", "<time>, <time>"),
        ("PT1H2.5S P3D 5msec 2w 7d 3h 3x 640x480", "<num> <num> <num> <num> <num> <num> 3x <num>"),
        ("Oct 10, 10 Oct 2025 Thu, 9 Oct 2025", "<time>, <time> <time>"),
        ("[10/Oct/2025:10:05 +0000] Friday, October 10, 2025", "[<time>:<num>:<num> <num>] <time>"),
        ("1:05PM 2025-W03 2025-10-10_10-00-00", "<time> <time> <time>"),
        (
            "task_7 t_1_2 part7.db db3.example.org a7/b",
            "task_<num> t_<num> part<num>.db db<num>.example.org a<num>/b",
        ),
        ("EUR7 10USD 1_024 0b101 0X1F 300rpm", "EUR<num> <num> <num> <num> <hex> <num>"),
        ("0000:1f:02.7 5254.00ab.1234 a.B@1f3a", "<hex> <mac> a.B@<hex>"),
        ("jürgen@example.org “m7”", "<mail> “m<num>”"),
        ("t_123e4567-e89b-12d3-a456-426614174000_x 01ARZ3NDEKTSV4RRFFQ69G5FAV", "t_<id>_x <id>"),
        ("user@1000.service getty@tty1.service", "user@<id>.service getty@<id>.service"),
    ],
)
def test_what_is_masked(message: str, expected: str) -> None:
    found = pl.DataFrame({"message": [message]}).select(mask_variables(pl.col("message")))
    assert found.item() == expected


@pytest.mark.parametrize(
    "message",
    [
        "utf8 ssh2 x86_64 k8s i18n p99 log4j md5 EC2 3d 2D 7z rc1 r2d2 4xx 5xx 2fa 1st 42nd",
        "deadbeef cafe, add a bad face to the facade, face2face e2e DEADBEEF",
        "std::vector abc::def Foo::bar dead::beef a::b feed:beef:cafe ab:cd",
        "key ED25519 of ssh-ed25519, ecdsa",
        "user@host root@localhost git@github default.target",
        "May I march, Friday P1 PT T7 utf_x 5x log4j.Foo, may be pm 3d EUR",
        "'hello' \"world\" don't can't 'it is'",
        "Error E1001 at ABCDEF abc1234x deb11u3",
    ],
)
def test_words_are_not_masked(message: str) -> None:
    """Else two messages would be one."""
    found = pl.DataFrame({"message": [message]}).select(mask_variables(pl.col("message")))
    assert found.item() == message


@pytest.mark.parametrize(
    "form",
    [
        *("took %dms", "took %d.5s", "took 2m%ds", "wrote %dKB", "wrote %d.25 GiB", "heap %dM"),
        *(
            "from 2001:db8::%x",
            "from [fe80::%x]:443",
            "from ::ffff:192.0.2.%d",
            "seen 52:54:00:ab:cd:%02x",
        ),
        *("to user%d@example.org", "loaded 'module%d'", 'loaded "a%db"', "loss 1.%de-05"),
        *("until 2025-10-10T00:00:00.%03dZ", "started unit@%d.service", "id 4f%05x%02x"),
    ],
)
def test_sp_2_messages_that_differ_in_one_value_are_one_template(form: str) -> None:
    """SP-2"""
    values = range(16, 216)
    texts = [form % ((i,) * form.replace("%%", "").count("%")) for i in values]
    found = pl.DataFrame({"m": texts}).select(mask_variables(pl.col("m")))["m"]
    known = Templates()
    assert len({each.id for text in found if (each := known.learn("f", text))}) <= 2


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
