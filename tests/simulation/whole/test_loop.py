"""Virtual time is asyncio's, but for the waiting; and a life that was killed does nothing more."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator

import pytest

from simulation.whole.costs import WORKERS
from simulation.whole.lives import Life, LifeOver, ProcessOver
from simulation.whole.loop import LoopError, VirtualLoop, within


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop(1)
    yield made
    made.close()


def test_a_day_passes_at_once(loop: VirtualLoop) -> None:
    loop = VirtualLoop(1, max_virtual_ms=10**9)
    began_at_s = time.monotonic()
    loop.run(asyncio.sleep(86_400))
    assert loop.time() == 86_400
    assert time.monotonic() - began_at_s < 60
    loop.close()


def test_timers_run_in_their_order_and_those_of_one_instant_as_they_were_made(
    loop: VirtualLoop,
) -> None:
    ran: list[str] = []

    async def main() -> None:
        loop.call_later(0.2, ran.append, "late")
        for name in "abcdefgh":
            loop.call_later(0.1, ran.append, name)
        loop.call_later(0.1, ran.append, "cancelled").cancel()
        loop.call_soon(ran.append, "soon")
        await asyncio.sleep(1)

    loop.run(main())
    assert ran == ["soon", *"abcdefgh", "late"]


def test_a_timer_is_never_early(loop: VirtualLoop) -> None:
    """Else a task that looks at the time, and sees that it is too early, waits for no time."""

    async def main() -> None:
        for number in range(2000):
            until = loop.time() + 0.5 + number / 7_000_000
            woken = asyncio.Event()
            loop.call_at(until, woken.set)
            await woken.wait()
            assert loop.time() >= until
            before = loop.time()
            await asyncio.sleep(number / 3_000_000)
            assert loop.time() >= before

    loop.run(main())


def test_many_cancelled_timers_leave_the_others_as_they_were(loop: VirtualLoop) -> None:
    ran: list[int] = []

    async def main() -> None:
        handles = [loop.call_later(1 + n % 7, ran.append, n) for n in range(2000)]
        for n, handle in enumerate(handles):
            if n % 10:
                handle.cancel()
        await asyncio.sleep(20)

    loop.run(main())
    assert ran == sorted(range(0, 2000, 10), key=lambda n: (n % 7, n))


def test_what_asyncio_offers_works_in_virtual_time(loop: VirtualLoop) -> None:
    async def main() -> list[str]:
        said: list[str] = []
        queue: asyncio.Queue[str] = asyncio.Queue(1)
        lock = asyncio.Lock()

        async def fill() -> None:
            for each in "xyz":
                await queue.put(each)
                await asyncio.sleep(1)

        task = asyncio.create_task(fill())
        for _ in "xyz":
            async with lock:
                said.append(f"{await queue.get()} at {loop.time():.0f}")
        await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 2)
        said.append(f"given up at {loop.time():.0f}")
        task = asyncio.create_task(asyncio.sleep(100))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return said

    assert loop.run(main()) == ["x at 0", "y at 1", "z at 2", "given up at 10"]


def test_a_thread_takes_its_time_and_its_outcome_comes_later_still(loop: VirtualLoop) -> None:
    async def main() -> None:
        at: list[float] = []

        def work(error: Exception | None) -> str:
            at.append(loop.time())
            if error is not None:
                raise error
            return "done"

        assert await asyncio.to_thread(work, None) == "done"
        assert 0 < at[0] < loop.time() < 0.1
        with pytest.raises(OSError, match="broken"):
            await loop.run_in_executor(None, work, OSError("broken"))
        waiting = asyncio.create_task(asyncio.to_thread(work, None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(1)
        assert len(at) == 3, "a thread goes on when no task waits for it any more"

    loop.run(main())


def test_a_task_that_spins_is_named(loop: VirtualLoop) -> None:
    async def restless() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(LoopError, match=r"time stands still: .*restless"):
        loop.run(restless())


def test_many_short_steps_are_no_spin(loop: VirtualLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simulation.whole.loop._SPIN_STEPS", 100)

    async def steady() -> None:
        for _ in range(1000):
            await asyncio.sleep(0.001)

    loop.run(steady())


def test_a_loop_in_which_nothing_can_happen_says_who_waits(loop: VirtualLoop) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    with pytest.raises(LoopError, match=r"nothing can happen any more; .*hangs"):
        loop.run(hangs())


def test_a_run_may_not_go_on_for_ever() -> None:
    for loop in (VirtualLoop(1, max_virtual_ms=10_000), VirtualLoop(1, max_steps=1000)):

        async def tick() -> None:
            while True:
                await asyncio.sleep(0.05)

        with pytest.raises(LoopError, match=r"virtual ms|steps"):
            loop.run(tick())
        loop.close()


def test_an_unhandled_exception_is_found(loop: VirtualLoop) -> None:
    life = loop.life("broker-1")

    def fails() -> None:
        raise ValueError("nothing is here")

    async def main() -> None:
        life.run(loop.call_soon, fails)
        await asyncio.sleep(1)

        async def forgotten() -> None:
            raise KeyError("forgotten")

        asyncio.create_task(forgotten())  # noqa: RUF006
        await asyncio.sleep(1)
        loop.create_future().set_exception(OSError("unseen"))

    loop.run(main())
    assert [(each.life, repr(each.error)) for each in loop.findings] == [
        ("broker-1", "ValueError('nothing is here')"),
        ("the world", "OSError('unseen')"),
    ]
    assert "fails" in loop.findings[0].message


# ---- lives ----


def test_nothing_of_a_killed_life_runs_any_more(loop: VirtualLoop) -> None:
    ran: list[str] = []

    async def works(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                ran.append(f"{name} {loop.time():.0f}")
        finally:
            ran.append(f"{name} cleans up")

    async def main() -> None:
        one, other = loop.life("one"), loop.life("other")
        for life in (one, other):
            life.run(loop.call_later, 2.5, ran.append, f"{life.name} timer")
            life.start(works(life.name))
        await asyncio.sleep(1.5)
        one.kill()
        await asyncio.sleep(2)

    loop.run(main())
    assert ran == ["one 1", "other 1", "other 2", "other timer", "other 3"]


def test_a_life_that_dies_in_its_turn_begins_nothing_on_its_way_out(loop: VirtualLoop) -> None:
    ran: list[str] = []

    def strike(life: Life) -> None:
        loop.world.copy().run(life.kill)
        raise ProcessOver

    async def begins() -> None:
        ran.append("a task of its own")

    async def work(life: Life) -> None:
        try:
            try:
                strike(life)
            finally:
                loop.call_soon(ran.append, "soon")
                loop.call_later(1, ran.append, "later")
                loop.world_at_us(loop.now_us + 10, ran.append, "in the world")
                life.start(begins())
                raise OSError("what its files say on the way out")
        except OSError:
            await asyncio.sleep(1)
            ran.append("it handled that, and went on")

    async def thread(life: Life) -> None:
        await asyncio.to_thread(strike, life)

    async def main() -> None:
        for number, begin in enumerate((work, thread)):
            life = loop.life(f"struck {number}")
            life.run(loop.call_later, 0.5, ran.append, "a timer of before")
            with pytest.raises(LifeOver):
                await life.call(begin(life))
        callback = loop.life("callback")
        callback.run(loop.call_soon, strike, callback)
        loop.life("other").run(loop.call_later, 1, ran.append, "another's")
        await asyncio.sleep(3)
        assert callback.is_over

    loop.run(main())
    gc.collect()
    assert ran == ["another's"]
    assert loop.findings == []
    loop.close()


def test_killed_tasks_are_put_away_without_a_word(
    loop: VirtualLoop, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    cleaned: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            try:
                await asyncio.sleep(1000)
            finally:
                cleaned.append("stubborn")
                raise OSError("the disk is dead")

    async def main() -> None:
        life = loop.life("one")
        life.start(stubborn())
        await asyncio.sleep(1)
        life.start(stubborn())  # has not begun when it is killed
        life.kill()
        life.start(stubborn())  # nor does this one
        loop.life("alive").start(stubborn())
        await asyncio.sleep(1)

    loop.run(main())
    assert cleaned == []
    loop.close()
    assert cleaned == ["stubborn"] * 2
    assert (caplog.messages, [str(each.message) for each in recwarn]) == ([], [])
    assert loop.findings == []


def test_a_pause_delays_all_and_loses_nothing(loop: VirtualLoop) -> None:
    ran: list[tuple[str, float]] = []

    async def main() -> None:
        life = loop.life("one")

        def note(name: str) -> None:
            ran.append((name, loop.time()))

        for at_s in (1, 3, 2, 6):
            life.run(loop.call_later, at_s, note, f"timer {at_s}")
        await asyncio.sleep(1.5)
        life.pause()
        life.run(loop.call_soon, note, "soon")
        loop.call_soon(note, "the world")
        await asyncio.sleep(3.5)
        loop.resume(life)
        await asyncio.sleep(10)

    loop.run(main())
    assert ran == [
        ("timer 1", 1),
        ("the world", 1.5),
        ("soon", 5),
        ("timer 2", 5),
        ("timer 3", 5),
        ("timer 6", 6),
    ]


def test_a_life_that_is_killed_in_its_pause_does_not_go_on(loop: VirtualLoop) -> None:
    ran: list[str] = []

    async def main() -> None:
        life = loop.life("one")
        life.run(loop.call_later, 1, ran.append, "no")
        life.pause()
        await asyncio.sleep(2)
        life.kill()
        loop.resume(life)
        await asyncio.sleep(2)

    loop.run(main())
    assert ran == []


def test_others_hear_of_what_they_asked_a_life_for(loop: VirtualLoop) -> None:
    async def answer(result: int) -> int:
        await asyncio.sleep(1)
        if result < 0:
            raise ValueError(result)
        return result

    async def main() -> None:
        life = loop.life("one")
        assert await life.call(answer(7)) == 7
        with pytest.raises(ValueError, match="-1"):
            await life.call(answer(-1))
        loop.call_later(0.5, life.kill)
        with pytest.raises(LifeOver):
            await within(5000, life.call(answer(8)))
        with pytest.raises(LifeOver):
            await life.call(answer(9))

    loop.run(main())
    assert loop.findings == []


def test_what_a_life_makes_is_its_own_and_so_is_what_that_makes(loop: VirtualLoop) -> None:
    ran: list[str] = []

    async def child() -> None:
        await asyncio.sleep(2)
        ran.append("child")

    async def parent() -> None:
        asyncio.get_running_loop().create_task(child())
        asyncio.get_running_loop().call_later(2, ran.append, "timer")
        await asyncio.to_thread(time.sleep, 0)

    async def main(life: Life) -> None:
        await life.call(parent())
        await asyncio.sleep(1)
        life.kill()
        await asyncio.sleep(5)

    loop.run(main(loop.life("one")))
    assert ran == []


def test_a_turn_holds_its_process_up_and_no_other(loop: VirtualLoop) -> None:
    busy, other = loop.life("busy"), loop.life("other")
    ran: list[tuple[str, int]] = []

    def note(name: str) -> None:
        ran.append((name, loop.now_us))

    async def main() -> None:
        busy.run(loop.call_soon, loop.spend, 5_000, "read")
        busy.run(loop.call_soon, note, "busy")
        other.run(loop.call_soon, note, "other")
        await asyncio.sleep(0.1)

    loop.run(main())
    assert ran == [("other", 0), ("busy", 5_000)]


def test_a_pause_that_ends_in_a_stall_is_not_the_end_of_it(loop: VirtualLoop) -> None:
    life = loop.life("busy")
    ran: list[int] = []

    async def main() -> None:
        life.run(loop.call_soon, loop.spend, 5_000, "read")
        life.run(loop.call_soon, lambda: ran.append(loop.now_us))
        await asyncio.sleep(0)
        life.pause()
        loop.world_at_us(2_000, loop.resume, life)
        await asyncio.sleep(0.1)

    loop.run(main())
    assert ran == [5_000]


def test_a_turn_above_the_budget_is_a_finding_that_names_it(loop: VirtualLoop) -> None:
    life = loop.life("a broker")
    life.budget_us = 10_000

    async def work(times: int) -> None:
        for _ in range(times):
            loop.spend(4_000, "sync", more_us=50_000, until_us=1_000_000)

    async def main() -> None:
        await life.call(work(2))
        assert loop.findings == []  # a slow disk is not the fault of the task that uses it
        await life.call(work(3))

    loop.run(main())
    (finding,) = loop.findings
    assert finding.life == "a broker"
    assert "a turn of 12 ms" in finding.message and "work: 3 x sync" in finding.message


def test_a_turn_that_outlasts_a_fault_pays_no_more_for_it(loop: VirtualLoop) -> None:
    life = loop.life("a broker")

    async def work() -> None:
        for _ in range(100):
            loop.spend(1_000, "sync", more_us=99_000, until_us=loop.now_us + 250_000)

    async def main() -> None:
        before_us = loop.now_us
        await life.call(work())
        await life.call(asyncio.sleep(0))
        assert loop.now_us - before_us == 3 * 100_000 + 97 * 1_000

    loop.run(main())


def test_what_a_thread_does_costs_its_own_time_and_an_executor_has_so_many(
    loop: VirtualLoop,
) -> None:
    life = loop.life("a broker")
    life.budget_us = 1
    done: list[int] = []

    async def work() -> None:
        await loop.run_in_executor(None, loop.spend, 1_000_000, "sync")
        done.append(loop.now_us // 1_000_000)

    async def main() -> None:
        for _ in range(WORKERS + 1):
            life.run(loop.create_task, work())
        await asyncio.sleep(5)

    loop.run(main())
    assert loop.findings == []
    assert done == [1] * WORKERS + [2]
