"""Bytes to messages and back; no input or output, no clock.

See `messages/` for the messages, `message` for their notation, `wire` for primitive types, `codec`
for encoding and decoding, `frame` for headers, and `api` for the table of APIs.
"""
