"""One file per API, its request and response side by side, in the notation of `..message`.

Field and struct names are those of Kafka's published schemas, in Python's case. A class covers
every version of Kafka 3.9's range; additions of later versions are left out.
"""
