"""Converts bytes to messages and back, without I/O or a clock.

See `messages/` for the messages, `message` for their notation, `wire` for primitive types, `codec`
for encoding and decoding, `frame` for headers, and `api` for the table of APIs.
"""
