"""Coordinates groups and transactions, with plain state machines over records of internal topics.

Each machine holds the state of one partition of `__consumer_offsets` or `__transaction_state`. It
takes events with the time, and returns a `Decision` for each. Durable state changes only in
`apply`, which treats newly appended and replayed records alike.
"""
