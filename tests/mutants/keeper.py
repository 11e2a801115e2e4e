"""Mutations of our ZooKeeper server's files and records."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutation import Mutation

_JOURNAL = partial(
    Mutation,
    "barnabas/zookeeper/journal.py",
    tests=("unit/zookeeper/test_journal.py", "unit/zookeeper/test_journal_crashes.py"),
)
_TRANSACTIONS = partial(
    Mutation,
    "barnabas/zookeeper/transactions.py",
    tests=(
        "unit/zookeeper/test_transactions.py",
        "unit/zookeeper/test_journal.py",
        "unit/zookeeper/test_journal_crashes.py",
    ),
)
_SERVER = partial(Mutation, "barnabas/zookeeper/server.py", tests=("simulation/test_keeper.py",))
_CONNECTION = partial(
    Mutation, "barnabas/zookeeper/connection.py", tests=("simulation/test_keeper.py",)
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
    _JOURNAL("        self._begin(zxid_of(snapshot))\n", ""),
    _JOURNAL("            self._file.truncate(found.end)\n", ""),
    _JOURNAL("            self._write_last_again(content, found)\n", "            pass\n"),
    _JOURNAL("        self._file.truncate(len(whole))\n", ""),
    _JOURNAL('                disk.remove(directory / f"{name}.tmp")\n', "                pass\n"),
    _JOURNAL("if not content and self._snapshot is not None:", "if False:"),
    _JOURNAL("            self._file.sync()  # the process", "            # the process"),
    _JOURNAL(" or found.end != len(content):", ":"),
    _JOURNAL("if len(found.whole) != 1 or ", "if "),
    _TRANSACTIONS("if zxid != transaction.zxid:", "if False:"),
    _TRANSACTIONS("        sessions.close(effect.number)\n", "        pass\n"),
    _TRANSACTIONS("node.aversion, node.creations),", "node.aversion, 0),"),
    _TRANSACTIONS("node.ctime, node.mtime = ", "node.mtime, node.ctime = "),
    _TRANSACTIONS("elif parent_of(path) not in tree.nodes:", "elif False:"),
    _SERVER("        if error is not None:\n", "        if False:\n"),
    _SERVER(
        "        self.synced_zxid = zxid\n", "        self.synced_zxid = self.processor.tree.zxid\n"
    ),
    _SERVER("        self.processor.sessions.touch_all(now_s)\n", ""),
    _SERVER("            self._journal.replace(snapshot)\n", "            pass\n"),
    _CONNECTION("while held and held[0][0] <= synced_zxid:", "while held:"),
    _CONNECTION("if zxid > server.synced_zxid:", "if False:"),
    _JUTE("if length < -1:", "if False:"),
    _JUTE("if count < -1 or ", "if "),
    _JUTE("count * least_bytes > self.left", "count > self.left"),
    _JUTE("if end > len(self._data):", "if False:"),
)
