"""Converts bytes to messages and messages to bytes, without any I/O and without a clock.

The messages are in `messages/`, their notation in `message`, the primitive types in `wire`,
encoding and decoding in `codec`, the headers in `frame`, and the table of APIs in `api`.
"""
