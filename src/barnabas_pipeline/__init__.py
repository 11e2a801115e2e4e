"""Turns log lines from a topic into tables and a page, with Spark.

    input, collector ─▶ topic ─▶ job ─▶ tables ─▶ snapshot, figures ─▶ report

`behaviour/` and `logs/` are the pipelines. `application.py` defines the interface that both
implement, `run.py` assembles a run, and `job.py` is the Spark side, which needs only the brokers'
addresses.
"""
