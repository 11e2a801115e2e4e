"""IN-6: a token applies one preview, once, and not for long."""

from __future__ import annotations

import pytest

from barnabas.console.problem import WebProblem
from barnabas.console.writing.form import Form
from barnabas.console.writing.leader_actions import ElectLeaders
from barnabas.console.writing.plan import Change, Plan
from barnabas.console.writing.tickets import LASTING_S, Tickets

ACTION = ElectLeaders.parse(Form({"of": "all topics"}))
PLAN = Plan("elect", (Change("t-0", "broker 1", "broker 2"),))


class Time:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def refused(tickets: Tickets, token: str) -> int:
    with pytest.raises(WebProblem) as caught:
        tickets.redeem(token)
    return caught.value.status


def test_a_token_is_redeemed_once() -> None:
    tickets = Tickets()
    token = tickets.issue(ACTION, PLAN)
    assert tickets.redeem(token)[:2] == (ACTION, PLAN)
    assert refused(tickets, token) == 410


def test_a_token_ends_with_its_time() -> None:
    time = Time()
    tickets = Tickets(time)
    early, late = tickets.issue(ACTION, PLAN), tickets.issue(ACTION, PLAN)
    time.now_s = LASTING_S - 0.001
    assert tickets.redeem(early)
    time.now_s = LASTING_S
    assert refused(tickets, late) == 410


def test_a_token_that_was_changed_is_refused_and_stays_good() -> None:
    tickets = Tickets()
    token = tickets.issue(ACTION, PLAN)
    assert refused(tickets, token[:-1] + ("0" if token[-1] != "0" else "1")) == 403
    assert tickets.redeem(token)


def test_a_token_of_another_process_is_refused() -> None:
    token = Tickets().issue(ACTION, PLAN)
    assert refused(Tickets(), token) == 410


def test_the_oldest_of_too_many_previews_ends() -> None:
    tickets = Tickets()
    tokens = [tickets.issue(ACTION, PLAN) for _ in range(101)]
    assert refused(tickets, tokens[0]) == 410
    assert tickets.redeem(tokens[1])


def test_plans_with_the_same_effect_have_the_same_bytes() -> None:
    told = PLAN._replace(sentences=("so",), warnings=("and so",))
    assert told.canonical() == PLAN.canonical()
    moved = PLAN._replace(changes=(Change("t-0", "broker 3", "broker 2"),))
    renewed = PLAN._replace(basis={"topic_id": "00"})
    assert len({PLAN.canonical(), moved.canonical(), renewed.canonical()}) == 3
