"""Contains a file for each API, with its request and response in the notation of `..message`.

The fields and structs have the same names as in Kafka's published schemas, in Python's spelling. A
class covers all versions in the range of Kafka 3.9. Later additions are left out.
"""
