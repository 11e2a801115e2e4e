"""`barnabas report` from the start of its process to its page, beside GoAccess and DuckDB.

    python -m benchmarks.report [--lines 100000] [--rounds 5]

All three read the same generated access log, in turns. GoAccess is run if it is installed (Debian's
goaccess); DuckDB does what benchmarks.behaviour has it do, without its own start. The wall times
are medians; ratios are what carries over to other machines.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from barnabas_pipeline.behaviour.generator import write_log
from benchmarks.behaviour import read_with_duckdb
from benchmarks.pipeline_jobs import seconds_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name:
        directory = Path(name)
        log = directory / "access.log"
        write_log(log, options.lines, seed=1)
        programs = _programs(log, directory)
        seconds: dict[str, list[float]] = {program: [] for program in programs}
        for _ in range(options.rounds):
            for program, run in programs.items():
                seconds[program].append(seconds_of(run))
        _show(options.lines, {program: median(each) for program, each in seconds.items()})


def _programs(log: Path, directory: Path) -> dict[str, Callable[[], None]]:
    page = str(directory / "report.html")
    report = [sys.executable, "-m", "barnabas.cli.main", "report", str(log), "--out", page]
    programs = {"barnabas report": lambda: _run(report)}
    if (goaccess := shutil.which("goaccess")) is not None:
        other = str(directory / "goaccess.html")
        words = [goaccess, str(log), "--log-format=COMBINED", "-o", other, "--no-progress"]
        programs["GoAccess"] = lambda: _run(words)
    programs["DuckDB, started"] = lambda: _fresh(log, directory / "duckdb")
    return programs


def _run(words: list[str]) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _fresh(log: Path, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    read_with_duckdb(log, directory)


def _show(lines: int, seconds: dict[str, float]) -> None:
    own = seconds["barnabas report"]
    for program, took_s in seconds.items():
        sys.stdout.write(
            f"{program:<16} {took_s:6.2f} s {lines / took_s:10,.0f} lines/s {own / took_s:5.2f}\n"
        )


if __name__ == "__main__":
    main()
