"""Bytes to messages and back; no input or output, no clock.

Read `messages/` for what is said, `message` for the notation, `wire` for the primitive layouts,
`codec` for the way in and out, `frame` for headers, and `api` for the table of it all.
"""
