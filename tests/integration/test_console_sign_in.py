"""IN-6: `barnabas console --sign-in`: every browser sees and does what its own user may."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from signal import SIGTERM
from typing import TYPE_CHECKING, Any

import pytest

import barnabas
from barnabas.client import (
    AclBinding,
    AclEntry,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
    UserScramCredentialUpsertion,
)
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.processes.chromium import opened
from tests.kit.processes.command_line import COMMAND
from tests.kit.processes.web_console import Answer, WebConsole, web_console
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

USERS = ("alice", "bob")
PASSWORDS = {user: f"the password of {user}, which nobody may see" for user in USERS}


def allow(user: str, kind: ResourceType, name: str, operation: Operation) -> AclBinding:
    entry = AclEntry(f"User:{user}", "*", operation, PermissionType.ALLOW)
    return AclBinding(Pattern(kind, name), entry)


@pytest.fixture(scope="module")
def settings() -> Iterator[Mapping[str, Any]]:
    """A cluster where each user may use a topic and a group of the user's own name."""
    with barnabas.Cluster(1, secure=True) as cluster:
        settings = cluster.client_settings()
        with SyncAdmin(settings) as admin, SyncProducer(settings) as producer:
            for user in USERS:
                admin.create_topics([NewTopic(f"of-{user}", 1)])
                producer.send(f"of-{user}", f"a secret of {user}".encode()).result(60)
                admin.alter_group_offsets(f"group-{user}", {TopicPartition(f"of-{user}", 0): 0})
                mechanism = settings["sasl.mechanism"]
                credential = UserScramCredentialUpsertion(user, PASSWORDS[user], mechanism)
                admin.alter_user_scram_credentials([credential])
                for operation in (Operation.READ, Operation.ALTER, Operation.DESCRIBE_CONFIGS):
                    admin.create_acls(allow(user, ResourceType.TOPIC, f"of-{user}", operation))
                admin.create_acls(allow(user, ResourceType.GROUP, f"group-{user}", Operation.READ))
            # So alice lists the groups of others, too, but may not describe them.
            cluster_rule = (ResourceType.CLUSTER, "kafka-cluster", Operation.DESCRIBE)
            admin.create_acls(allow("alice", *cluster_rule))
        yield settings


@pytest.fixture
def console(settings: Mapping[str, Any], tmp_path: Path) -> Iterator[WebConsole]:
    """A console whose file has no user."""
    file = tmp_path / "client.properties"
    own = {"bootstrap.servers", "sasl.jaas.config"}
    lines = [f"{name}={text}\n" for name, text in settings.items() if name not in own]
    file.write_text("".join(lines))
    words = ("--sign-in", "--write", "--command-config", str(file))
    with web_console(settings["bootstrap.servers"], *words) as running:
        yield running


def sign_in(console: WebConsole, user: str, password: str | None = None, **headers: Any) -> Answer:
    value = {"user": user, "password": PASSWORDS[user] if password is None else password}
    return console.post("/api/session/sign-in", value, X_Barnabas_Console=None, **headers)


def cookie_of(answer: Answer) -> str:
    assert answer.status == 200, answer
    return answer.headers["set-cookie"].partition(";")[0]


def everything(console: WebConsole, cookie: str) -> str:
    paths = ("overview", "topics", "groups", "events", "transactions", "brokers", "security")
    answers = [console.ask(f"/api/{path}", Cookie=cookie) for path in paths]
    assert [answer.status for answer in answers] == [200] * len(paths)
    return "".join(answer.body.decode() for answer in answers)


def test_nobody_sees_what_another_user_saw(console: WebConsole) -> None:
    cookies = {user: cookie_of(sign_in(console, user)) for user in USERS}
    assert cookies["alice"] != cookies["bob"]
    names = {user: {f"of-{user}", f"group-{user}"} for user in USERS}
    for user in USERS:  # the groups' lags arrive later

        def is_counted(user: str = user) -> bool:
            page = console.ask("/api/groups", Cookie=cookies[user]).json
            return (f"group-{user}", 1) in [(row["id"], row["lag"]) for row in page["groups"]]

        wait_until(is_counted, 30)
    for _ in range(3):  # one after the other, so that a shared cache would show
        seen = {user: everything(console, cookies[user]) for user in USERS}
        assert all(name in seen[user] for user in USERS for name in names[user])
        assert not any(name in seen["bob"] for name in names["alice"])
        assert "of-bob" not in console.ask("/api/topics", Cookie=cookies["alice"]).body.decode()
        overviews = {
            user: console.ask("/api/overview", Cookie=cookies[user]).json for user in USERS
        }
        assert [overviews[user]["topics"] for user in USERS] == [1, 1]
        assert "Describe on 1 group" in overviews["alice"]["lacks"]
        assert "Describe on the cluster" in overviews["bob"]["lacks"]
        assert overviews["alice"]["events"] and not overviews["bob"]["events"]
    for user, other in (USERS, USERS[::-1]):
        own = console.ask(f"/api/topics/of-{user}/messages", Cookie=cookies[user])
        assert f"a secret of {user}" in own.body.decode()
        for place in (f"of-{other}", f"of-{other}/messages", f"of-{other}/messages/stream"):
            assert console.ask(f"/api/topics/{place}", Cookie=cookies[user]).status == 404


def test_a_group_that_is_denied_does_not_hide_the_lag_of_others(console: WebConsole) -> None:
    cookie = cookie_of(sign_in(console, "alice"))

    def is_known() -> bool:
        rows = console.ask("/api/groups", Cookie=cookie).json["groups"]
        lags = {row["id"]: row["lag"] for row in rows}
        return lags.get("group-alice") == 1

    wait_until(is_known, 60)
    overview = console.ask("/api/overview", Cookie=cookie).json
    assert "lacks the permission Describe on 1 group. Their lag" in overview["lacks"]
    assert overview["error"] == ""


def test_changes_are_decided_and_logged_by_user(console: WebConsole) -> None:
    for user in USERS:
        cookie = cookie_of(sign_in(console, user))
        secret = console.ask("/api/actions", Cookie=cookie).json["secret"]
        value = {"topic": f"of-{user}", "partitions": 1}
        headers = {"Cookie": cookie, "X_Barnabas_Console": secret}
        answer = console.post("/api/actions/create-topic/preview", value, **headers)
        assert answer.status in (400, 403), answer
    # A secret belongs to one session.
    bobs = console.post(
        "/api/actions/create-topic/preview", {}, Cookie=cookie, X_Barnabas_Console="x"
    )
    assert bobs.status == 403
    assert console.stop(SIGTERM) == 0
    assert console.process.stderr is not None
    log = console.process.stderr.read().decode()
    assert re.search(r"127\.0\.0\.1 sign in as alice: done", log)
    assert re.search(r"127\.0\.0\.1:\d+ bob preview create-topic", log)
    assert not any(password in log for password in PASSWORDS.values())


def test_without_a_session_nothing_is_shown(console: WebConsole) -> None:
    assert console.ask("/").status == 200
    assert console.ask("/api/session").json == {"required": True, "user": "", "ended": ""}
    for cookie in ("", "x=1", f"barnabas-console-{console.port}=guessed"):
        for path in ("overview", "topics/of-bob/messages", "events/stream", "actions", "nothing"):
            answer = console.ask(f"/api/{path}", Cookie=cookie)
            assert (answer.status, answer.json["error"]) == (401, "sign in first")
    assert (
        console.post("/api/actions/create-topic/preview", {}, X_Barnabas_Console="").status == 401
    )


def test_a_session_ends_with_the_button_and_its_cookie_is_strict(console: WebConsole) -> None:
    answer = sign_in(console, "alice")
    cookie = cookie_of(answer)
    attributes = answer.headers["set-cookie"].casefold()
    assert "httponly" in attributes and "samesite=strict" in attributes
    assert "secure" not in attributes
    assert console.ask("/api/session", Cookie=cookie).json["user"] == "alice"
    out = console.post("/api/session/sign-out", {}, X_Barnabas_Console=None, Cookie=cookie)
    assert out.status == 200
    assert console.ask("/api/overview", Cookie=cookie).status == 401


def test_wrong_passwords_are_refused_clearly_and_limited(console: WebConsole) -> None:
    for _ in range(5):
        answer = sign_in(console, "alice", "wrong")
        assert answer.status == 403, answer
        assert b"the cluster does not accept this user and password" in answer.body
        assert "set-cookie" not in answer.headers
    assert sign_in(console, "alice").status == 429
    assert sign_in(console, "bob").status == 200
    assert console.stop() == 0
    assert console.process.stderr is not None
    assert b"wrong" not in console.process.stderr.read()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
    ],
)
def test_another_site_cannot_sign_in(
    console: WebConsole, headers: dict[str, str], status: int
) -> None:
    assert sign_in(console, "alice", **headers).status == status


def test_a_browser_signs_in_and_out(browser: Browser, console: WebConsole) -> None:
    with opened(browser, is_refused=True) as page:
        page.goto(f"http://localhost:{console.port}/#/topics")
        page.get_by_label("User").fill("bob")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("does not accept this user and password").wait_for()
        page.get_by_label("Password").fill(PASSWORDS["bob"])
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="of-bob").wait_for()
        assert page.get_by_role("link", name="of-alice").count() == 0
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("heading", name="Sign in").wait_for()
        assert page.get_by_text("of-bob").count() == 0


def test_a_cluster_without_users_cannot_be_signed_in_to() -> None:
    command = [COMMAND, "console", "--port", "0", "--sign-in"]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
    assert done.returncode != 0
    assert "--sign-in: security.protocol is PLAINTEXT, which has no users" in done.stderr
    assert "Traceback" not in done.stderr
