"""Contains one file per API, with its request and response in the notation of `..message`.

Field and struct names are those of Kafka's published schemas, in Python's case. A class covers
every version in Kafka 3.9's range; later additions are omitted.
"""
