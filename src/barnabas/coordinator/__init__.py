"""Coordinates groups and transactions, with plain state machines over internal topics' records.

Each machine contains the state of one partition of `__consumer_offsets` or `__transaction_state`.
It takes events and the time, and returns a `Decision` for each. State that must survive changes
only in `apply`, which treats newly appended and replayed records alike.
"""
