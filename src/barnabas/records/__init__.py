"""Reads, checks, builds and rewrites record batches. This package does no I/O.

There are several readers for the records of a batch, because a loop that decodes everything takes a
microsecond per record, and most callers need less. For example, admitting a batch with
`walk_records` would take 1.4 times as long as with `rewrite.Walk`. Each reader either returns the
same records, leaves the batch to another reader, or raises `CorruptData`
(tests/property/test_record_readers.py compares all readers).

    reader                          of each record           for
    record.walk_records             everything               replay of coordinators, tools, what the
                                                             next one leaves; oracle of the tests
    uniform_records.read_uniform    all but headers,         consumers, which have no numpy: 16
                                    in columns of bytes      records of one layout on average
    rewrite.Walk                    everything, keeps none   admission of batches in doubt, and for
                                                             topics with rules for records; in
                                                             steps, as it runs on the loop
    plausibility.is_plausible       the first and the last   admission of all other batches: one
                                                             search from the end (decision 18)
    record_starts.walk_starts       its length               `fields`, and what compaction has
                                                             walked before
    columns.iterate_columns         everything, in Arrow     Spark and data frames, over all
                                                             batches of a fetch; by the first of:
      record_tables.rows_of           equal strides            256 records to a stretch on average
      layout_classes.uniform_fields   few layouts, mixed       eight classes at most
      fields.any_fields               any                      all others, and all errors
    storage.compaction.sieve        key, times, tombstone    the cleaner, which hashes keys on the
                                                             way, and keeps records as bytes

`record_layout` determines where the fields of one record begin, and the column readers apply this
to all records that have the same layout. There are two writers: `record.BatchBuilder`, and
`column_encoder` for columns.
"""
