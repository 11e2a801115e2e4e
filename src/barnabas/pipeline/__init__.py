"""The user-behaviour pipeline: an access log through a topic into tables and a page.

    generator, collector ─▶ topic ─▶ job ─▶ tables ─▶ snapshot, figures ─▶ report
                                     └▶ behaviour, sessions, traffic: pure DataFrame functions

`run.py` puts it together; `job.py` is the Spark side and needs nothing of the rest but the broker's
address.
"""
