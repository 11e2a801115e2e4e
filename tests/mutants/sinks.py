"""Mutations of what writes once: the sinks of Spark, the pipeline's tables and the collector."""

from __future__ import annotations

from functools import partial

from tests.mutants.mutation import Mutation

_TABLES = "unit/pyspark_barnabas/delta/test_table.py"
_FAULTS = "unit/pyspark_barnabas/delta/test_faults.py"

_TOKEN = partial(
    Mutation,
    "pyspark_barnabas/token.py",
    tests=("unit/pyspark_barnabas/test_token.py",),
)
_PROGRESS = partial(Mutation, "pyspark_barnabas/delta/progress.py", tests=(_TABLES, _FAULTS))
_TABLE = partial(Mutation, "pyspark_barnabas/delta/table.py", tests=(_TABLES, _FAULTS))
_COMPACTION = partial(Mutation, "pyspark_barnabas/delta/compaction.py", tests=(_FAULTS,))
_PIPELINE_TESTS = ("pipeline/test_tables.py",)
_LETTERS = partial(Mutation, "barnabas_pipeline/dead_letter_topic.py", tests=_PIPELINE_TESTS)
_PIPELINE = partial(Mutation, "barnabas_pipeline/tables.py", tests=_PIPELINE_TESTS)
_VACUUM = partial(
    Mutation, "barnabas_pipeline/tables.py", tests=("pipeline/test_tables_vacuum.py",)
)
_STEP = partial(Mutation, "barnabas_pipeline/step.py", tests=_PIPELINE_TESTS)
_FINGERPRINT = partial(
    Mutation,
    "barnabas_collector/fingerprint.py",
    tests=(
        "unit/barnabas_collector/test_recognition.py",
        "unit/barnabas_collector/test_registry.py",
    ),
)

MUTATIONS = (
    _TOKEN("if found is not None and found.query != wanted.query:", "if False:"),
    _TOKEN("if begins is not None and wanted.batch < begins:", "if False:"),
    _TOKEN("if wanted.batch in (0, begins):", "if True:"),
    _TOKEN("if wanted.batch in (0, begins):", "if wanted.batch == 0:"),
    _TOKEN("if wanted.batch == found.batch + 1:", "if wanted.batch > found.batch:"),
    _TOKEN(
        "        if wanted.batch == begins:\n            return False\n        raise",
        "        raise",
    ),
    _TOKEN("    if wanted.batch < found.batch:", "    if False:"),
    _TOKEN("if wanted.rows != found.rows:", "if False:"),
    _PROGRESS(
        "if found.application is not None and found.application != found.query:",
        "if False:",
    ),
    _PROGRESS("if begins is not None and batch < begins:", "if False:"),
    _PROGRESS(
        "    if found.is_restored:\n        return _of_restored(app_id, batch, begins)\n",
        "",
    ),
    _PROGRESS("if found.rows not in (None, rows):", "if False:"),
    _PROGRESS("if batch < expected:", "if False:"),
    _PROGRESS("if batch in (expected, begins):", "if batch >= expected:"),
    _PROGRESS("if batch in (expected, begins):", "if batch == expected:"),
    _PROGRESS(
        "if found.application is None or version > found.application:",
        "if found.application is None:",
    ),
    _PROGRESS(
        "return not found.is_restored or _of_restored(app_id, version, begins)",
        "return True",
    ),
    _PROGRESS("if begins is not None and batch <= begins:", "if False:"),
    _PROGRESS("return batch < begins", "return True"),
    _TABLE("if self._is_committed(table, files, query, known):", "if False:"),
    _TABLE("if info.size != file.size_bytes:", "if False:"),
    _TABLE(
        "if any(tuple(file.partition_values) != partition_by for file in files):",
        "if False:",
    ),
    _TABLE(
        "CommitProperties(said, max_commit_retries=0, app_transactions=transactions)",
        "CommitProperties(said, app_transactions=transactions)",
    ),
    _TABLE(
        "            return CommitProperties(max_commit_retries=0)",
        "            return CommitProperties()",
    ),
    _TABLE(
        "transactions.append(Transaction(query_application(app_id, query), version))",
        "pass",
    ),
    _TABLE("is_restored = any(version < commit", "is_restored = any(True or commit"),
    _COMPACTION("if table is None or not set(old) <= set(_small_files(table)):", "if not table:"),
    _COMPACTION(
        'CommitProperties({_OPERATION: "compact"}, max_commit_retries=0)',
        'CommitProperties({_OPERATION: "compact"})',
    ),
    _LETTERS("if not self._has(batch, since, begins, ends):", "if True:"),
    _LETTERS("start if begin <= start <= end else begin", "start"),
    _LETTERS("start if begin <= start <= end else begin", "end"),
    _LETTERS(
        'return self._is_in(places, batch, "read_uncommitted") and self._is_in(\n'
        '            places, batch, "read_committed"\n        )',
        'return self._is_in(places, batch, "read_uncommitted")',
    ),
    _LETTERS("if all(header in record.headers for header in wanted):", "if True:"),
    _PIPELINE(
        "            self.tidy()\n"
        "        versions = self._of_each(lambda name: self._version_of(name, batch))\n",
        "            pass\n"
        "        versions = self._of_each(lambda name: self._version_of(name, batch))\n"
        "        self.tidy()\n",
    ),
    _PIPELINE(
        "while (found := table.transaction_version(self.layout.application)) != batch:",
        "while found := None:",
        why_it_survives="where others have gone on, the control table has the batch already, and"
        " this row is not written",
    ),
    _PIPELINE("elif control.query == query:", "elif True:"),
    _PIPELINE("        if batch > done + 1:", "        if False:"),
    _VACUUM(
        "        is_new = self.replace_control(batch, query, row)\n",
        "        self._drop_old(versions)\n"
        "        is_new = self.replace_control(batch, query, row)\n",
    ),
    _STEP("if not tables.is_next(batch, self.id, before):", "if batch < 0:"),
    _STEP(
        "letters_end = before.dead_letters_end if before else {}",
        "letters_end = {}",
        why_it_survives="it saves work alone: the look at the topic begins further on",
    ),
    _FINGERPRINT(
        "if len(beginning) < self.size_bytes:",
        "if False:",
        why_it_survives="it saves work alone: a shorter beginning has another digest",
    ),
    _FINGERPRINT(
        "return not self.size_bytes or digest(beginning[: self.size_bytes]) == self.digest",
        "return True",
    ),
    _FINGERPRINT(
        'return any(line.strip() and not line.startswith(b"#") for line in lines)',
        "return True",
    ),
)
