"""Turns log lines from a topic into tables and a page, with Spark.

    input, collector ─▶ topic ─▶ job ─▶ tables ─▶ snapshot, figures ─▶ report

The two pipelines are in `behaviour/` and `logs/`. `application.py` defines the interface that both
of them implement, `run.py` assembles a run, and `job.py` contains the code that runs in Spark,
which needs only the brokers' addresses.
"""
