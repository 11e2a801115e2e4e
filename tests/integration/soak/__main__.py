"""`python -m tests.integration.soak --minutes 10 --seed 7`: three brokers and a ZooKeeper under
faults for as long, everything at work, and then the whole account. `make soak` is this."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.integration.soak.run import soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="of the faults' order (default: a new one)")
    parser.add_argument("--dir", type=Path, help="kept, with all logs (default: a temporary one)")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    directory = given.dir or Path(tempfile.mkdtemp(prefix="barnabas-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, {given.minutes:g} minutes, in {directory}", flush=True)
    report = soak(directory, seed, given.minutes * 60)
    print(f"{'all is well' if report.is_good else 'IT IS NOT WELL'}: seed {seed}, {directory}")
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
