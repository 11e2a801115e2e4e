"""Coordinates groups and transactions with state machines that are stored in internal topics.

Each machine holds the state of one partition of `__consumer_offsets` or `__transaction_state`. It
is called with an event and the current time, and returns a `Decision`. Durable state changes only
in `apply`, which handles newly appended records and replayed records in the same way.
"""
