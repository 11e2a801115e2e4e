"""Transactions and the two clocks: timeouts are monotonic, records have wall time."""

from __future__ import annotations

import pytest

from barnabas.coordinator.settings import TransactionConfig
from tests.kit.transaction_driver import Driver

HOUR_MS = 3_600_000
MONTH_MS = 30 * 24 * HOUR_MS


@pytest.fixture
def driver() -> Driver:
    made = Driver(TransactionConfig(abort_interval_ms=1_000))
    made.pass_time(1_000)  # the first look after a load
    return made


@pytest.mark.parametrize("step_ms", [MONTH_MS, -HOUR_MS])
def test_a_timeout_does_not_move_with_the_wall_clock(driver: Driver, step_ms: int) -> None:
    driver.add(driver.owner(), 0)
    driver.ahead_ms += step_ms
    driver.pass_time(60_000)
    assert driver.status == "Ongoing"
    driver.pass_time(1)
    assert driver.status == "PrepareAbort"
    assert "aborted after 60001 ms" in driver.log_lines[-1]


def test_records_have_wall_time(driver: Driver) -> None:
    driver.ahead_ms = HOUR_MS
    owner = driver.owner()
    driver.add(owner, 0)
    assert driver.state().begun_ms == driver.state().updated_ms == driver.now_ms + HOUR_MS
    driver.ahead_ms = -HOUR_MS
    driver.add(owner, 1)
    assert driver.state().begun_ms == driver.now_ms + HOUR_MS
    assert driver.state().updated_ms == driver.now_ms - HOUR_MS
    driver.end(owner, True)
    driver.write_markers()
    assert driver.state().updated_ms == driver.now_ms - HOUR_MS


@pytest.mark.parametrize(
    ("step_ms", "left_ms"),
    [(0, 40_000), (-HOUR_MS, 60_000), (5_000, 35_000), (MONTH_MS, 0)],
)
def test_a_new_coordinator_derives_what_is_left(driver: Driver, step_ms: int, left_ms: int) -> None:
    """By the wall clock, as it is then; never more than the whole timeout. Whatever is set
    afterwards changes nothing more."""
    driver.add(driver.owner(), 0)
    driver.pass_time(20_000)
    driver.ahead_ms += step_ms
    driver.crash()
    driver.ahead_ms += HOUR_MS
    if left_ms:
        driver.pass_time(left_ms)
        assert driver.status == "Ongoing"
    driver.pass_time(1_000)
    assert driver.status == "PrepareAbort"


def test_the_monotonic_clock_of_another_machine_is_another_one(driver: Driver) -> None:
    """It begins with each boot, so nothing of it can be in the log."""
    driver.add(driver.owner(), 0)
    driver.pass_time(20_000)
    driver.ahead_ms = driver.now_ms - 500
    driver.now_ms = 500
    driver.crash()
    driver.pass_time(40_000)
    assert driver.status == "Ongoing"
    driver.pass_time(1)
    assert driver.status == "PrepareAbort"


def test_the_next_transaction_of_an_id_has_all_of_its_time(driver: Driver) -> None:
    owner = driver.owner()
    for _ in range(3):
        driver.add(owner, 0)
        driver.pass_time(40_000)
        driver.ahead_ms += MONTH_MS
        assert driver.end(owner, False) == 0
        driver.write_markers()
    driver.add(owner, 0)
    driver.is_refusing = True
    driver.pass_time(60_001)
    driver.is_refusing = False
    assert driver.status == "Ongoing"
    driver.pass_time(1_001)
    assert driver.status == "PrepareAbort"


def test_an_append_that_is_refused_begins_nothing(driver: Driver) -> None:
    owner = driver.owner()
    driver.is_refusing = True
    with pytest.raises(AttributeError):
        driver.add(owner, 0)  # is not answered
    driver.is_refusing = False
    driver.pass_time(50_000)
    driver.add(owner, 0)
    driver.pass_time(60_000)
    assert driver.status == "Ongoing"
    driver.pass_time(1)
    assert driver.status == "PrepareAbort"


def test_no_id_is_removed_while_its_age_is_unknown() -> None:
    """ST-6: until the next look behind that."""
    driver = Driver(TransactionConfig(expiration_ms=2_000, expiration_interval_ms=1_000))
    driver.owner("idle")
    driver.now_ms += 1_000
    driver.ahead_ms = MONTH_MS
    assert driver.machine.expire(driver.now, may_forget=False) == []
    assert driver.machine.deadline_ms() == driver.now_ms + 1_000
    driver.pass_time(1_000)
    assert list(driver.machine) == []
