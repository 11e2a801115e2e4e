"""IN-6: sessions of `barnabas console --sign-in` with PLAIN: they begin, are denied, and end."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas
from barnabas.client import AclBinding, AclEntry, Operation, Pattern, PermissionType, ResourceType
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from tests.kit.processes.chromium import opened
from tests.kit.processes.web_console import PATIENCE_S, Answer, WebConsole, web_console

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PASSWORDS = {"admin": "admin's password", "alice": "alice's password"}
_USERS = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker whose users are in its file, where alice may see one topic but not change it."""
    config = {
        "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.in.plain.sasl.jaas.config": f"{_PLAIN} required {_USERS};",
        "connection.failed.authentication.delay.ms": "0",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    with barnabas.Broker(config=config) as broker:
        ports = {each.name: each.port for each in broker.server.listeners}
        with SyncAdmin(f"127.0.0.1:{ports['OPEN']}") as admin:
            admin.create_topics([NewTopic("seen", 1), NewTopic("hidden", 1)])
            entry = AclEntry("User:alice", "*", Operation.DESCRIBE, PermissionType.ALLOW)
            admin.create_acls([AclBinding(Pattern(ResourceType.TOPIC, "seen"), entry)])
        yield f"127.0.0.1:{ports['IN']}"


@pytest.fixture
def client_file(tmp_path: Path) -> Path:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n")
    return file


def started(servers: str, file: Path, *words: str) -> AbstractContextManager[WebConsole]:
    return web_console(servers, "--sign-in", "--write", "--command-config", str(file), *words)


def sign_in(console: WebConsole, user: str, password: str) -> Answer:
    value = {"user": user, "password": password}
    return console.post("/api/session/sign-in", value, X_Barnabas_Console=None)


def signed_in(console: WebConsole, user: str) -> str:
    """Sign in, and return the cookie."""
    answer = sign_in(console, user, PASSWORDS[user])
    assert answer.status == 200, answer
    return answer.headers["set-cookie"].partition(";")[0]


def test_in_6_users_sign_in_with_plain(servers: str, client_file: Path) -> None:
    with started(servers, client_file) as console:
        refused = sign_in(console, "alice", "wrong")
        assert refused.status == 403 and "does not accept this user" in refused.json["error"]
        topics = {
            user: [
                row["name"]
                for row in console.ask("/api/topics", Cookie=signed_in(console, user)).json[
                    "topics"
                ]
            ]
            for user in PASSWORDS
        }
        assert topics == {"admin": ["hidden", "seen"], "alice": ["seen"]}


def test_in_6_a_denied_change_names_the_signed_in_user(servers: str, client_file: Path) -> None:
    with started(servers, client_file) as console:
        cookie = signed_in(console, "alice")
        secret = console.ask("/api/actions", Cookie=cookie).json["secret"]
        value = {"topic": "seen", "partitions": 3}
        headers = {"Cookie": cookie, "X_Barnabas_Console": secret}
        answer = console.post("/api/actions/add-partitions/preview", value, **headers)
        if answer.status == 200:  # only the change itself is denied
            token = {"token": answer.json["token"]}
            answer = console.post("/api/actions/add-partitions/apply", token, **headers)
        error = answer.json["error"]
        assert answer.status == 403 and "--command-config" not in error
        assert "The user 'alice' needs the permission Alter on the topic 'seen'" in error
        assert "An administrator of the cluster can grant it with `barnabas acls add`" in error


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--session-idle", "1s"), "after 1 second without a request"),
        (("--session-length", "3s"), "after 3 seconds"),
    ],
)
def test_in_6_a_session_expires(
    servers: str, client_file: Path, words: tuple[str, ...], reason: str
) -> None:
    with started(servers, client_file, *words) as console:
        cookie = signed_in(console, "alice")
        wait_for_end_of_stream(console, cookie)
        assert console.ask("/api/topics", Cookie=cookie).status == 401
        state = console.ask("/api/session", Cookie=cookie).json
        assert state == {"required": True, "user": "", "ended": f"Your session has ended {reason}."}


def wait_for_end_of_stream(console: WebConsole, cookie: str) -> None:
    """Read a stream of the session until the console ends it. Any other request would be a sign
    that the session is in use."""
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/api/events/stream", headers={"Cookie": cookie})
        response = connection.getresponse()
        assert response.status == 200
        response.read()
    finally:
        connection.close()


def test_in_6_a_browser_returns_to_its_page_after_the_session(
    browser: Browser, servers: str, client_file: Path
) -> None:
    with (
        started(servers, client_file, "--session-length", "10s") as console,
        opened(browser, is_refused=True) as page,
    ):

        def sign_in_here() -> None:
            page.get_by_label("User").fill("alice")
            page.get_by_label("Password").fill(PASSWORDS["alice"])
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("heading", name="seen").wait_for()

        address = f"http://localhost:{console.port}/#/topics/seen"
        page.goto(address)
        assert page.get_by_text("Your session has ended").count() == 0
        sign_in_here()
        page.get_by_text("Your session has ended after 10 seconds.").wait_for()
        assert page.get_by_role("heading", name="seen").count() == 0
        sign_in_here()
        assert page.url == address
