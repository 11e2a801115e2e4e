"""Our learner of templates beside drain3, on lines in memory: accuracy and speed.

    python -m benchmarks.log_templates LOGHUB

`LOGHUB` is a checkout of loghub (https://github.com/logpai/loghub), of which the sets of 2,000
labelled lines are read. All systems have the same settings. drain3 runs as it comes with the masks
of `benchmarks.logs`, and once more after our masks with the settings that this project used
before it had a learner. Each time is the best of three, in seconds of the processor.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Final

import polars as pl
from drain3 import TemplateMiner
from drain3.drain import Drain
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig

from barnabas_pipeline.logs.masks import mask_variables
from barnabas_pipeline.logs.templates import Templates
from benchmarks.logs import MASKS
from tests.kit.pipeline.grouping import accuracy

HELD_BACK: Final = ("HealthApp", "Hadoop", "Proxifier", "Spark")
"""The sets whose lines were not looked at while the learner was written."""
_SPEED_LINES: Final = 100_000

Grouping = Callable[[Sequence[str]], Sequence[Hashable]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("loghub", type=Path)
    paths = sorted(parser.parse_args().loghub.glob("*/*_2k.log_structured.csv"))
    if not paths:
        parser.error("no */*_2k.log_structured.csv there: is it a checkout of loghub?")
    learners: dict[str, Grouping] = {"ours": ours, "drain3": drain3, "drain3, our masks": masked}
    print(f"{'':<14}" + "".join(f"{name:>20}" for name in learners))
    rows = {}
    for path in paths:
        messages, labels = labelled(path)
        name = path.parent.name
        rows[name] = [accuracy(labels, group(messages)) for group in learners.values()]
        _show(f"{name}{' *' if name in HELD_BACK else ''}", rows[name])
    held = [rows[name] for name in rows if name in HELD_BACK]
    others = [rows[name] for name in rows if name not in HELD_BACK]
    for what, some in (("mean", [*held, *others]), ("held back *", held), ("others", others)):
        if some:
            _show(what, [sum(column) / len(some) for column in zip(*some, strict=True)])
    _show_speed(paths, learners)


def labelled(path: Path) -> tuple[list[str], list[str]]:
    """Return the messages of a labelled set and their labels."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["Content"] for row in rows], [row["EventId"] for row in rows]


def ours(messages: Sequence[str]) -> Sequence[Hashable]:
    known = Templates()
    lines = pl.DataFrame({"message": messages}).select(mask_variables(pl.col("message")))
    distinct = lines.unique(maintain_order=True)
    found = [known.learn("any", text) for text in distinct["message"]]
    ids = distinct.with_columns(pl.Series("id", [each and each.id for each in found]))
    return lines.join(ids, on="message", how="left", maintain_order="left")["id"].to_list()


def drain3(messages: Sequence[str]) -> Sequence[Hashable]:
    config = TemplateMinerConfig()
    config.masking_instructions = [MaskingInstruction(*each) for each in MASKS]
    miner = TemplateMiner(config=config)
    return [miner.add_log_message(each)["cluster_id"] for each in messages]


def masked(messages: Sequence[str]) -> Sequence[Hashable]:
    drain = Drain(depth=5, sim_th=0.7)
    lines = pl.DataFrame({"message": messages}).select(mask_variables(pl.col("message")))
    return [drain.add_log_message(each)[0].cluster_id for each in lines["message"]]


def _show(what: str, figures: Sequence[float]) -> None:
    print(f"{what:<14}" + "".join(f"{each:20.4f}" for each in figures))


def _show_speed(paths: Sequence[Path], learners: dict[str, Grouping]) -> None:
    """Print the rates over all sets, each repeated until it has its share of the lines."""
    times = _SPEED_LINES // (2_000 * len(paths)) + 1
    sets = [labelled(path)[0] * times for path in paths]
    total = sum(len(each) for each in sets)
    best = dict.fromkeys(learners, float("inf"))
    for _ in range(3):
        for name, group in learners.items():
            begin_s = time.process_time()
            for messages in sets:
                group(messages)
            best[name] = min(best[name], time.process_time() - begin_s)
    print(f"{'lines/s':<14}" + "".join(f"{total / seconds:20,.0f}" for seconds in best.values()))


if __name__ == "__main__":
    main()
