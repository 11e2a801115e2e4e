"""Coordinators of groups and of transactions: plain machines over the records of internal topics.

Each machine is the state in one partition of `__consumer_offsets` or `__transaction_state`. Events
and time go in, a `Decision` comes out. State that must survive changes only in `apply`, which
treats a newly appended record and a replayed one alike.
"""
