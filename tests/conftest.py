"""Fixtures that every kind of test may ask for."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

# Pytest explains failed assertions of test modules alone; those of the kit fail on their behalf.
pytest.register_assert_rewrite("tests.kit")

from tests.kit.secured.skips import reason_of  # noqa: E402
from tests.kit.secured.suite import IS_SECURED  # noqa: E402

if IS_SECURED:
    from tests.kit.secured import defaults

    defaults.install()  # before anything takes a client from its library

from tests.kit import foreign, second_run  # noqa: E402
from tests.kit.effort import IS_SOAK, examples  # noqa: E402
from tests.kit.pipeline import class_archive  # noqa: E402
from tests.kit.raw_client import NO_TIDYING  # noqa: E402

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker


class_archive.use()

LONG_S = 10

# A machine that does other things as well is slow now and then; that is no failure of the code. The
# examples are the same in each run, whose outcome then depends on the code alone; `make soak` draws
# others.
settings.register_profile(
    "barnabas",
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_SOAK,
    print_blob=True,
)
settings.load_profile("barnabas")


def pytest_configure(config: pytest.Config) -> None:
    second_run.register(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests stay until the end: no collection need look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=IS_SECURED)
def _no_secret_is_said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """SE-6: in the secured suites, what all brokers and commands have said and written."""
    from tests.kit.secured import secrets

    yield
    secrets.look_into(tmp_path_factory.getbasetemp())
    assert secrets.places == []
    print(sum(secrets.looks.values()), f"places were searched for secrets: {secrets.looks}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers take the longest files first, lest one of them works alone at the end; and the
    secured suites leave some tests out, and say why."""
    if hasattr(config, "workerinput"):
        lines = Path(__file__).with_name("long_files.txt").read_text().split()
        ranks = {name: rank for rank, name in enumerate(lines)}
        items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(ranks)))
    if IS_SECURED:
        for item in items:
            reason = reason_of(item.nodeid)
            if reason is not None:
                item.add_marker(pytest.mark.skip(f"secured suites: {reason}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[pytest.TestReport]:
    """What a test printed, logged and raised is searched, too."""
    report: pytest.TestReport = yield  # type: ignore[misc,assignment]
    if IS_SECURED:
        from tests.kit.secured import secrets

        for name, said in (*report.sections, ("the failure", report.longreprtext)):
            secrets.look("reports", f"{name} of {report.nodeid}", said)
    return report


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of fixtures and real data that lies beside the checkout."""
    return foreign.require_shared()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """An embedded broker of the module's own, on a free port and in a temporary directory.

    All tests of a module talk to this one process at once or in turn, so they name their topics
    themselves and leave other topics alone.
    """
    import barnabas

    with barnabas.Broker(config=NO_TIDYING) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what passing tests counted: how many partitions, frames, kills, files were judged."""
    counted = [
        f"{report.nodeid}: {line}"
        for kind in ("passed", "")  # "": before and after a test
        for report in terminalreporter.getreports(kind)
        for line in report.capstdout.splitlines()
        if re.match(r"\d+ [a-z]", line)
    ]
    if counted:
        terminalreporter.section("counted")
        for line in dict.fromkeys(counted):  # a report has what those before it had
            terminalreporter.write_line(line)
    _show_long_files(terminalreporter)


def _show_long_files(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the files that took longest, as `tests/long_files.txt` should have them."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    long = [(name, took) for name, took in seconds.most_common() if took >= LONG_S]
    if long:
        terminalreporter.section(f"files that took {LONG_S} seconds")
        for name, took in long:
            terminalreporter.write_line(f"{took:7.1f} {name}")
