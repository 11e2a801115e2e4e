"""Pipelines on Spark: lines through a topic into tables and a page.

    input, collector ─▶ topic ─▶ job ─▶ tables ─▶ snapshot, figures ─▶ report

`behaviour/` and `logs/` are the pipelines, `application.py` the interface of such a package;
`run.py` puts it together, and `job.py` is the Spark side, which only needs the brokers' address.
"""
