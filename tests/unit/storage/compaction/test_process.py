"""The process in which logs are compacted, as its broker sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from barnabas.storage.compaction.job import Job, job_lines


def test_it_ends_without_a_word_when_its_broker_was_killed(tmp_path: Path) -> None:
    """A `kill -9` of the broker leaves it writing into a pipe that has no reader."""
    job = Job(
        directory=str(tmp_path / "missing"),  # answered at once: the pass has failed
        sources=(),
        first_dirty_offset=0,
        aborted=(),
        now_ms=0,
        delete_retention_ms=0,
        segment_bytes=1 << 20,
        segment_index_bytes=1 << 20,
        index_interval_bytes=4096,
        buffer_bytes=1 << 20,
        read_bytes=4096,
        bytes_per_second=1e9,
        load_factor=0.9,
    )
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas.storage.compaction"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"".join(job_lines(job, {})))
        process.stdin.flush()
        said = process.stderr.read()
        assert (said, process.wait()) == (b"", 0)
