"""Mutations of our ZooKeeper server's files and records."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutation import Mutation

_JOURNAL = partial(
    Mutation,
    "barnabas/zookeeper/journal.py",
    tests=("unit/zookeeper/test_journal.py", "unit/zookeeper/test_journal_crashes.py"),
)
_JUTE = partial(Mutation, "barnabas/zookeeper/jute.py", tests=("unit/zookeeper/test_jute.py",))

MUTATIONS = (
    _JOURNAL("if found.damaged_at is not None and newest_zxid > snapshot_zxid:", "if False:"),
    _JOURNAL(" is not None and newest_zxid > snapshot_zxid:", " is not None:"),
    _JOURNAL("        self._cut(content, found)\n", ""),
    _JOURNAL(" if each.zxid > snapshot_zxid]", "]"),
    _JOURNAL("max(newest_zxid, self._stopped_zxid)", "newest_zxid"),
    _JOURNAL("if self.synced_zxid > self._stopped_zxid:", "if False:"),
    _JOURNAL("        if self.sealed_zxid > self.synced_zxid:", "        if False:"),
    _JOURNAL("            if tree.zxid < self.sealed_zxid:", "            if False:"),
    _JOURNAL("        self._file.sync()\n        self.size_bytes +=", "        self.size_bytes +="),
    _JOURNAL("        self._file.write(self.size_bytes, seal(self.synced_zxid))\n", ""),
    _JOURNAL(
        "self._disk.replace(temporary, self.directory / name)\n"
        "        self._disk.sync_directory(self.directory)\n",
        "self._disk.replace(temporary, self.directory / name)\n",
    ),
    _JUTE("if length < -1:", "if False:"),
    _JUTE("if count < -1 or ", "if "),
    _JUTE("count * least_bytes > self.left", "count > self.left"),
    _JUTE("if end > len(self._data):", "if False:"),
)
