"""Replaces one broker by one of the other kind, and can be resumed (MX-3).

`plan` decides what is next. This module does it, saves the progress after each action, and asks the
cluster again.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from barnabas.cli.migrate.facts import BARNABAS, UNKNOWN, ClusterFacts
from barnabas.cli.migrate.plan import (
    Action,
    Kind,
    Progress,
    is_running,
    losses,
    next_action,
    order,
)
from barnabas.cli.migrate.read import Connection
from barnabas.cli.migrate.replica_check import check_replicas, read_tails
from barnabas.cli.migrate.state_file import State, write_state
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.client.offsets import LATEST
from barnabas.counted import counted
from barnabas.errors import BarnabasError, KafkaError
from barnabas.types import TopicPartition

_PAUSE_S = 0.5
_MOST_ELECTIONS = 20
_REGISTRATION_S = 15.0

Say = Callable[[str], None]


class StepFailed(BarnabasError):
    """The replacement of a broker has stopped, with the reason."""


class Options(NamedTuple):
    """How a step is done. Without a command, the operator is asked to do it."""

    state_file: Path
    stop_command: str | None
    start_command: str | None
    timeout_s: float
    checks_records: bool
    allows_loss: bool


def choose(facts: ClusterFacts, target: str, broker_id: int | None) -> int:
    """Return the broker to replace: this one, or the next. Raises StepFailed."""
    left = order(facts, target)
    if broker_id is not None:
        if broker_id not in left:
            raise StepFailed(f"broker {broker_id} is not one of the brokers to replace")
        return broker_id
    if not left:
        raise StepFailed(f"every broker is {target}; there is nothing to replace")
    if facts.kind_of(left[0]) == UNKNOWN:
        raise StepFailed(f"broker {left[0]} is not alive; start it, or name it with --broker")
    return left[0]


class Stepper:
    """Replaces one broker."""

    def __init__(self, connection: Connection, state: State, options: Options, say: Say) -> None:
        self._connection, self._options, self._say = connection, options, say
        self.state = state
        self._elections_failed = 0

    async def run(self, broker_id: int | None) -> int:
        """Replace this broker, or the next one. Returns its id. Raises StepFailed."""
        facts = await self._connection.facts()
        progress = self.state.current or Progress(choose(facts, self.state.target, broker_id))
        if broker_id not in (None, progress.broker_id):
            raise StepFailed(f"broker {progress.broker_id} is being replaced; complete this first")
        lost = losses(facts, progress.broker_id) * (self._kind(facts, progress) != UNKNOWN)
        if lost and self.state.current is None and not self._options.allows_loss:
            raise StepFailed(f"{'; '.join(lost)}; add replicas, or give --allow-unavailable")
        if self.state.current is None:
            self._save(progress)
        else:
            self._say(f"continuing with broker {progress.broker_id} ({self._options.state_file})")
            await self._resume()
        while (action := await self._next()).kind is not Kind.FINISH:
            await self._do(action)
        done = tuple(sorted({*self.state.done, progress.broker_id}))
        self.state = self.state._replace(done=done, current=None)
        write_state(self._options.state_file, self.state)
        return progress.broker_id

    async def _resume(self) -> None:
        """Start the broker again if an earlier command did not do it, or if it was not successful.

        What was asked for may have been done just before, so the broker gets some time.
        """
        ends_at = asyncio.get_running_loop().time() + _REGISTRATION_S
        while self._progress.has_started:
            facts = await self._look_patiently()
            if is_running(facts, self._progress.broker_id, self.state.target):
                return
            is_over = asyncio.get_running_loop().time() > ends_at
            if is_over or self._kind(facts, self._progress) != UNKNOWN:
                self._save(self._progress._replace(has_started=False))
            else:
                await asyncio.sleep(_PAUSE_S)

    async def _look_patiently(self) -> ClusterFacts:
        """Return what the cluster reports, once the brokers that are asked agree."""
        ends_at = asyncio.get_running_loop().time() + self._options.timeout_s
        while True:
            try:
                return await self._connection.look()
            except BarnabasError:  # such as a topic that a broker does not know yet
                if asyncio.get_running_loop().time() > ends_at:
                    raise
                await asyncio.sleep(_PAUSE_S)

    def _kind(self, facts: ClusterFacts, progress: Progress) -> str:
        return facts.kind_of(progress.broker_id)

    @property
    def _progress(self) -> Progress:
        assert self.state.current is not None
        return self.state.current

    def _save(self, progress: Progress) -> None:
        self.state = self.state._replace(current=progress)
        write_state(self._options.state_file, self.state)

    @property
    def _other(self) -> str:
        """The command that undoes this step."""
        return "back" if self.state.target == BARNABAS else "step"

    async def _next(self) -> Action:
        """Return the next action, once there is nothing to wait for."""
        ends_at = asyncio.get_running_loop().time() + self._options.timeout_s
        logged: tuple[str, ...] = ()
        while True:
            try:
                facts = await self._connection.look()
                action = next_action(facts, self._progress, self.state.target)
            except BarnabasError as error:  # such as a topic that a broker does not know yet
                action = Action(Kind.WAIT, (str(error),))
            if action.kind is not Kind.WAIT:
                return action
            if action.reasons != logged:
                logged = action.reasons
                self._say(f"waiting: {'; '.join(logged)}")
            if asyncio.get_running_loop().time() > ends_at:
                raise StepFailed(
                    f"gave up waiting: {'; '.join(logged)}; repeat the command to continue, or "
                    f"return the broker with `barnabas migrate {self._other} --execute`"
                )
            await asyncio.sleep(_PAUSE_S)

    async def _do(self, action: Action) -> None:
        broker_id = self._progress.broker_id
        if action.kind is Kind.STOP:
            await self._stop()
        elif action.kind is Kind.START:
            self._say(f"broker {broker_id} is down; starting it as {self.state.target}")
            self._save(self._progress._replace(has_started=True))
            await self._run(
                self._options.start_command,
                f"Start broker {broker_id} as {self.state.target} on the same directories",
            )
        elif action.kind is Kind.VERIFY:
            await self._verify()
        else:
            await self._restore(action.partitions)

    async def _restore(self, names: tuple[TopicPartition, ...]) -> None:
        """Let the broker lead the partitions of which it is the preferred leader."""
        broker_id = self._progress.broker_id
        self._say(f"broker {broker_id} is elected the leader of {counted(len(names), 'partition')}")
        try:
            await self._connection.changing.elect_leaders(PREFERRED, list(names))
        except KafkaError as error:
            self._elections_failed += 1
            if self._elections_failed > _MOST_ELECTIONS:
                raise StepFailed(
                    f"broker {broker_id} is in sync, but cannot be elected: {error}; repeat the "
                    "command, or use `barnabas elect-leaders`"
                ) from error
            self._say(f"the election failed, and is repeated: {error}")
        await asyncio.sleep(_PAUSE_S)  # until all brokers know the leaders

    async def _stop(self) -> None:
        broker_id = self._progress.broker_id
        facts = await self._connection.facts()
        led = {name for name, view in facts.partitions() if view.leader >= 0}
        names = [name for name in facts.replicas_on(broker_id) if name in led]
        ends = await self._connection.admin.list_offsets(dict.fromkeys(names, LATEST))
        known = {name: ends[name].offset for name in names}
        tails = await read_tails(self._connection, facts, broker_id, known)
        used = await self._connection.log_directories(facts.brokers[broker_id].node)
        self._save(
            self._progress._replace(ends=known, tails=tails, directories=used, has_stopped=True)
        )
        self._say(f"stopping broker {broker_id} ({facts.kind_of(broker_id)})")
        await self._run(self._options.stop_command, f"Stop broker {broker_id} cleanly")
        await self._until_gone(broker_id)

    async def _until_gone(self, broker_id: int) -> None:
        ends_at = asyncio.get_running_loop().time() + self._options.timeout_s
        says_it_at = asyncio.get_running_loop().time() + _REGISTRATION_S
        while True:
            try:
                described = await self._connection.admin.describe_cluster()
                if all(each.broker_id != broker_id for each in described.brokers):
                    return
            except BarnabasError:
                pass  # the broker that was asked is the one that stops
            if asyncio.get_running_loop().time() > ends_at:
                raise StepFailed(
                    f"broker {broker_id} is still registered; stop it, and repeat the command"
                )
            if asyncio.get_running_loop().time() > says_it_at:
                says_it_at = ends_at
                self._say(f"waiting: broker {broker_id} is still registered; stop it")
            await asyncio.sleep(_PAUSE_S)

    async def _run(self, command: str | None, request: str) -> None:
        """Run a command of the operator, or ask for it."""
        if command is None:
            _ask(request)
            return
        text = command.replace("{broker}", str(self._progress.broker_id))
        done = await asyncio.to_thread(subprocess.run, text, shell=True, check=False)
        if done.returncode:
            raise StepFailed(
                f"`{text}` failed with exit code {done.returncode}; resolve this and repeat the "
                f"command, or return the broker with `barnabas migrate {self._other} --execute`"
            )

    async def _verify(self) -> None:
        broker_id = self._progress.broker_id
        await self._warn_of_directories()
        ends_at = asyncio.get_running_loop().time() + self._options.timeout_s
        logged = ""
        while True:
            try:
                facts = await self._connection.facts()
                found = await check_replicas(
                    self._connection, facts, self._progress, records=self._options.checks_records
                )
                break
            except BarnabasError as error:  # such as another broker that fails meanwhile
                if asyncio.get_running_loop().time() > ends_at:
                    raise StepFailed(
                        f"broker {broker_id} cannot be verified: {error}; repeat the command"
                    ) from error
                if str(error) != logged:
                    logged = str(error)
                    self._say(f"the verification is repeated: {error}")
                await asyncio.sleep(_PAUSE_S)
        if found.problems:
            raise StepFailed(
                f"broker {broker_id} lacks records: {'; '.join(found.problems)}; find out whether "
                f"its log directories are those of before{self._directories_of_before()}, start "
                "it on those, and repeat the command"
            )
        self._say(
            f"verified {counted(found.replicas, 'replica')}: none ends earlier than before, and in "
            f"{found.compared} of them, {counted(found.offsets, 'offset')} equal the leader's"
        )
        self._save(self._progress._replace(is_verified=True))

    def _directories_of_before(self) -> str:
        used = self._progress.directories
        return f" ({', '.join(used)})" if used else ""

    async def _warn_of_directories(self) -> None:
        """Warn if the broker was started on other log directories."""
        broker_id, before = self._progress.broker_id, self._progress.directories
        facts = await self._look_patiently()
        if not before or broker_id not in facts.brokers:
            return
        now = await self._connection.log_directories(facts.brokers[broker_id].node)
        if now and now != before:
            self._say(
                f"warning: broker {broker_id} has its logs in {', '.join(now)}, but had them in "
                f"{', '.join(before)}; if these are not the same files, it copies everything from "
                "the other brokers, and lacks what only it had"
            )


def _ask(request: str) -> None:
    """Wait until the operator presses Enter. Nothing else has to be done meanwhile.

    Raises StepFailed if the standard input has ended, and KeyboardInterrupt.
    """
    click.echo(f"{request}, then press Enter ", nl=False)
    with _interruptible():
        answer = sys.stdin.readline()
    if not answer:
        click.echo()
        raise StepFailed(
            "the standard input has ended, so the question cannot be answered; repeat the command "
            "in a terminal, or give --stop-command and --start-command"
        )


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt at once, although the event loop is blocked."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
