"""Implements `kafka-delegation-tokens.sh`, which creates, renews, expires and describes tokens."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas.cli.kafka.options import BadCommandLine, Given, Option, flags, values
from barnabas.cli.kafka.tool import Line, NotCovered, Tool, admin_of
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import run_client
from barnabas.security.acl_binding import parse_principal

if TYPE_CHECKING:
    from barnabas.client.admin.token_admin import DelegationToken

_ACTIONS: Final = ("create", "renew", "expire", "describe")
_OWNER, _RENEWER = "owner-principal", "renewer-principal"
_LIFE, _RENEWAL, _EXPIRY = "max-life-time-period", "renew-time-period", "expiry-time-period"
_NEEDED: Final = {"create": (_LIFE,), "renew": ("hmac", _RENEWAL), "expire": ("hmac", _EXPIRY)}
_NOT_WITH: Final = {
    "create": ("hmac", _RENEWAL, _EXPIRY),
    "renew": (_RENEWER, _LIFE, _EXPIRY, _OWNER),
    "expire": ("renew", _LIFE, _RENEWAL, _OWNER),
    "describe": (_RENEWAL, _LIFE, "hmac", _EXPIRY),
}
_ROW: Final = "\n{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}\n"
_HEADING: Final = (
    *("TOKENID", "HMAC", "OWNER", "REQUESTER"),
    *("RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"),
)
_LONG_MAX: Final = 2**63 - 1


def explain(given: Given) -> list[Line]:
    """Raise NotCovered: `barnabas` has no command for tokens."""
    _action(given)
    raise NotCovered(
        "`barnabas` has no command of its own for tokens; without --explain, this line runs "
        "unchanged"
    )


def run(given: Given) -> int:
    """Execute the command line, and print Kafka's output."""
    run_client(_RUNS[_action(given)](given))
    return EXIT_OK


def _action(given: Given) -> str:
    """Return the action of the command line. Raises BadCommandLine with the tool's message."""
    action = given.one_of(
        *_ACTIONS,
        complaint="Command must include exactly one action: --create, --renew, --expire or "
        "--describe",
    )
    # Tokens need an authenticated connection (KIP-48), so Kafka requires the credentials file.
    given.need("bootstrap-server", "command-config", *_NEEDED.get(action, ()))
    given.not_with(action, *_NOT_WITH[action])
    return action


async def _create(given: Given) -> None:
    renewers, owners = _users(given, _RENEWER), _users(given, _OWNER)
    life_ms = _period(given, _LIFE)
    # As in Kafka, print before sending, so that even a rejected request is shown.
    async with admin_of(given) as admin:
        click.echo(
            f"Calling create token operation with renewers :{_java_list(renewers)} , "
            f"max-life-time-period :{life_ms}"
        )
        token = await admin.create_delegation_token(
            owner=owners[0] if owners else None, renewers=renewers, max_lifetime_ms=life_ms
        )
    click.echo(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


async def _renew(given: Given) -> None:
    period_ms = _period(given, _RENEWAL)
    async with admin_of(given) as admin:
        click.echo(
            f"Calling renew token operation with hmac :{given.text('hmac')} , "
            f"renew-time-period :{period_ms}"
        )
        expires_at_ms = await admin.renew_delegation_token(_hmac(given), period_ms)
    click.echo(f"Completed renew operation. New expiry date : {_date(expires_at_ms)}", nl=False)


async def _expire(given: Given) -> None:
    period_ms = _period(given, _EXPIRY)
    async with admin_of(given) as admin:
        click.echo(
            f"Calling expire token operation with hmac :{given.text('hmac')} , "
            f"expire-time-period :{period_ms}"
        )
        expires_at_ms = await admin.expire_delegation_token(_hmac(given), period_ms)
    click.echo(f"Completed expire operation. New expiry date : {_date(expires_at_ms)}", nl=False)


async def _describe(given: Given) -> None:
    owners = _users(given, _OWNER)
    async with admin_of(given) as admin:
        if owners:
            click.echo(f"Calling describe token operation for owners: {_java_list(owners)}")
        else:
            click.echo("Calling describe token operation for current user.")
        tokens = await admin.describe_delegation_tokens(owners)
    click.echo(f"Total number of tokens : {len(tokens)}", nl=False)
    _print(tokens)


_RUNS: Final[dict[str, Callable[[Given], Coroutine[Any, Any, None]]]] = {
    "create": _create,
    "renew": _renew,
    "expire": _expire,
    "describe": _describe,
}


def _users(given: Given, option: str) -> list[str]:
    """Return the user names in an option. Raises BadCommandLine or NotCovered."""
    users = []
    for text in given.texts(option):
        try:
            principal = parse_principal(text.strip())
        except ValueError as error:
            raise BadCommandLine(f"--{option}: {error}") from None
        # Kafka's brokers reject other types with INVALID_PRINCIPAL_TYPE.
        if principal.kind != "User":
            raise NotCovered(f"--{option} {text}: only users can have tokens, written as User:name")
        users.append(principal.name)
    return users


def _period(given: Given, option: str) -> int:
    period_ms = given.number(option, -_LONG_MAX - 1, _LONG_MAX)
    if period_ms is None:
        raise BadCommandLine(f"--{option}: give milliseconds, or -1 for the brokers' default")
    return period_ms


def _hmac(given: Given) -> bytes:
    try:
        # The HMAC is the token's password (KIP-48), so the error does not repeat it.
        return b64decode(given.text("hmac") or "", validate=True)
    except binascii.Error:
        raise BadCommandLine("--hmac: not base64; give the value that --create printed") from None


def _java_list(users: Sequence[str]) -> str:
    return "[{}]".format(", ".join(f"User:{user}" for user in users))


def _date(wall_ms: int) -> str:
    """Parse a date in this machine's time zone, as in Kafka."""
    return datetime.fromtimestamp(wall_ms / 1000).astimezone().strftime("%Y-%m-%dT%H:%M")


def _print(tokens: Sequence[DelegationToken]) -> None:
    click.echo(_ROW.format(*_HEADING), nl=False)
    for token in tokens:
        row = _ROW.format(
            token.token_id,
            b64encode(token.hmac).decode(),
            token.owner,
            token.requester,
            "[{}]".format(", ".join(token.renewers)),
            _date(token.issue_timestamp_ms),
            _date(token.expiry_timestamp_ms),
            _date(token.max_timestamp_ms),
        )
        click.echo(row, nl=False)


TOOL = Tool(
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    (
        *flags("create renew expire describe"),
        *values(f"bootstrap-server=HOST:PORT command-config=FILE hmac=HMAC {_LIFE}=MS"),
        *values(f"{_RENEWAL}=MS {_EXPIRY}=MS"),  # a number may be negative
        *(Option(name, "PRINCIPAL", is_value_optional=True) for name in (_OWNER, _RENEWER)),
    ),
    explain,
    run,
)
