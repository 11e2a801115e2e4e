"""Pipelines on Spark: lines through a topic into tables and a page.

    input, collector ─▶ topic ─▶ job ─▶ tables ─▶ snapshot, figures ─▶ report

`behaviour/` is what is special to access logs, `application.py` what such a package provides;
`run.py` puts it together, and `job.py` is the Spark side, which needs nothing of the rest but the
brokers' address.
"""
