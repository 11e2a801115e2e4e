"""The log of the machines' tests knows of epochs what a real one knows."""

from __future__ import annotations

from pathlib import Path
from random import Random

from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import OsFiles
from tests.kit.replication.epoch_log import EpochLog


def test_its_epochs_are_those_of_a_real_log(tmp_path: Path) -> None:
    for seed in range(30):
        random = Random(seed)
        directory = tmp_path / str(seed)
        directory.mkdir()
        real, log, epoch = LeaderEpochs(OsFiles(), directory), EpochLog(), 0
        for _ in range(30):
            start, end = log.log_start_offset, log.log_end_offset
            match random.randrange(6):
                case 0 | 1:
                    epoch += random.randrange(3)
                    real.assign(epoch, end)
                    log.assign(epoch)
                case 2 | 3:
                    real.assign(epoch, end)
                    log.append(*[epoch] * random.randrange(1, 4))
                case 4:
                    offset = random.randint(start, end)
                    log.truncate(offset)
                    real.truncate_from_end(offset)
                case _:
                    offset = random.randint(start, min(end, start + 2))
                    log.raise_log_start(offset)
                    real.truncate_from_start(offset)
            assert log.starts == [tuple(entry) for entry in real.entries]
            assert log.latest_epoch == real.latest
            for asked in range(-1, epoch + 3):
                expected = real.end_offset_for(asked, log.log_end_offset)
                assert log.epoch_end_offset(asked) == tuple(expected)
