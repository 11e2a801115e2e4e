"""ZS-2: whole brokers on our real ZooKeeper server, whose machine fails as theirs do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from simulation.keeper import run as keeper
from simulation.whole.keeper_store import WAYS
from simulation.whole.plan import draw, with_keeper
from simulation.whole.run import Outcome, run
from simulation.whole.shrink import shrink
from tests.kit.second_run import fresh_seed
from tests.simulation.whole.planted_keeper import KEEPERS
from tests.simulation.whole.seeds import MOST_TRIES

HELD = range(40)
IN_EACH_RUN = HELD[:12]
_ENOUGH = 5


def _hold(seeds: Iterable[int]) -> list[Outcome]:
    outcomes = []
    for seed in seeds:
        outcome = run(with_keeper(draw(seed)))
        assert not outcome.broken, shrink(outcome, tries=MOST_TRIES).story
        outcomes.append(outcome)
    return outcomes


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_zs_2_brokers_hold_on_our_server() -> None:
    outcomes = _hold(IN_EACH_RUN)
    met: Counter[str] = Counter()
    for each in outcomes:
        met.update(each.events)
    assert met["expiries"] and met["elections"], met
    faults = Counter[str]()
    for each in outcomes:
        faults.update(each.faults)
    assert {f"ZooKeeper: {way}" for way in WAYS} <= faults.keys(), faults


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_zs_2_more_seeds_hold_on_our_server() -> None:
    first = 1_000_000 + fresh_seed()
    _hold([*HELD[len(IN_EACH_RUN) :], *range(first, first + len(HELD))])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", KEEPERS)
def test_zs_2_a_bug_that_only_brokers_find_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    KEEPERS[bug](monkeypatch)
    assert not any(keeper.run(keeper.draw(seed)).broken for seed in range(_ENOUGH))
    assert any(run(with_keeper(draw(seed))).broken for seed in IN_EACH_RUN)


def test_a_run_on_our_server_is_a_function_of_its_seed() -> None:
    plan = with_keeper(draw(2))._replace(faults_end_at_ms=5_000)
    plan = plan._replace(faults=tuple(each for each in plan.faults if each.at_ms < 5_000))
    assert run(plan).digest == run(plan).digest
