"""Seeds: whole clusters under faults, with every rule checked after every step (DL-2, ZK-5)."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import pytest

from simulation.__main__ import summary, unjudged_rules
from simulation.machines import Machines
from simulation.options import EMPTIED, STALL, draw
from simulation.rules import RULES
from simulation.run import Outcome, run
from simulation.shrink import shrink
from tests.kit.effort import rounds
from tests.kit.second_run import fresh_seed
from tests.simulation.planted import PLANTED, BrokerThatTrustsANewDisk, LeaderThatGivesUp

QUICK = range(50)
BULK = range(1000, 1000 + rounds(75, in_soak=1990))


def _hold(seeds: Iterable[int]) -> list[Outcome]:
    outcomes = [run(draw(seed)) for seed in seeds]
    for outcome in outcomes:
        assert outcome.violation is None, shrink(outcome).story
    return outcomes


def test_seeds_hold_and_prove_something() -> None:
    outcomes = _hold(QUICK)
    assert unjudged_rules(outcomes) == []
    assert median(outcome.acknowledged for outcome in outcomes) >= 300, summary(outcomes)
    assert median(outcome.faults for outcome in outcomes) >= 5


@pytest.mark.parametrize("seed", [2183, 2802, 3350])
def test_what_every_disk_has_lost_is_no_finding(seed: int) -> None:
    """A marker at the end of a partition; what leaders before and after the loss count late."""
    options = draw(seed)
    # Found when there were no stalls yet.
    faults = tuple(fault for fault in options.faults if fault.kind != STALL)
    outcome = run(options._replace(faults=faults))
    assert outcome.violation is None, outcome.story


def test_what_was_deleted_before_all_others_lost_it_stays_deleted() -> None:
    """Who has an empty log leads again, above what the leader before had left of the partition."""
    _hold(range(67, 68))


@pytest.mark.parametrize("seed", [6455, 52066])
def test_another_topic_s_log_is_set_aside(seed: int) -> None:
    """It stayed where its replica was moved away from a broker that was down, or had expired."""
    _hold([seed])


def test_a_topic_may_go_while_its_replicas_are_asked_where_they_end() -> None:
    _hold(range(4841, 4842))


def test_an_epoch_that_is_asked_for_late_is_not_given_again() -> None:
    """PR-7: the request stood still, and arrives when that epoch has a transaction."""
    _hold(range(285, 286))


def test_a_config_that_changes_before_its_topic_is_hosted_is_read_again() -> None:
    """The controller's request was decoded before the change, and carried out after it."""
    _hold([5274])


@pytest.mark.slow
@pytest.mark.repeated
@pytest.mark.timeout(2000)
def test_many_seeds_hold() -> None:
    _hold(BULK)


@pytest.mark.slow
def test_new_seeds_hold() -> None:
    """Drawn for each run: a failing one reports its number, which repeats it."""
    first = 1_000_000 + fresh_seed()
    _hold(range(first, first + 20))


@pytest.mark.parametrize("kind", list(PLANTED))
def test_a_planted_bug_is_found(kind: str) -> None:
    """Each within seeds that hold without it."""
    found = next(
        (
            outcome
            for seed in range(200)
            if (outcome := run(draw(seed), PLANTED[kind])).violation is not None
        ),
        None,
    )
    assert found is not None
    assert f"seed {found.options.seed}" in found.story


def test_a_new_disk_that_is_trusted_is_found_where_disks_are_replaced() -> None:
    """By a seed that holds without it, and with it where no disk is replaced."""
    options = draw(900_011)
    machines = Machines(broker=BrokerThatTrustsANewDisk)
    calm = options._replace(faults=tuple(each for each in options.faults if each.kind != EMPTIED))
    assert run(options).violation is None
    assert run(calm, machines).violation is None
    assert run(options, machines).violation is not None


def test_a_failing_run_shrinks_and_tells_its_story() -> None:
    machines = PLANTED["log"]
    failed = next(
        outcome
        for seed in range(60, 70)
        if (outcome := run(draw(seed), machines)).violation is not None
        and outcome.violation.rule == "idempotence"
    )
    smaller = shrink(failed, machines, tries=8)
    assert failed.violation is not None and smaller.violation is not None
    assert smaller.violation.rule == failed.violation.rule
    assert len(smaller.options.faults) < len(failed.options.faults)
    assert "BROKEN: idempotence" in smaller.story
    assert run(smaller.options, machines).digest == smaller.digest


def test_what_a_machine_raises_is_a_finding_with_a_story() -> None:
    outcome = run(draw(0), Machines(partition=LeaderThatGivesUp))
    assert outcome.violation is not None
    assert outcome.violation.rule == "assertions"
    assert "ZeroDivisionError" in outcome.story


def test_a_rule_that_judged_nothing_is_reported() -> None:
    outcome = run(draw(0), Machines())
    outcome.judged.update(dict.fromkeys(RULES, 1))
    outcome.judged["truncation"] = 0
    assert unjudged_rules([outcome] * 50) == ["truncation"]
    assert unjudged_rules([outcome]) == []
