"""Reads, checks, builds and rewrites record batches. This package does no I/O.

There are several readers for the records of a batch, because a loop that decodes everything takes a
microsecond per record, and most callers need less. For example, admitting a batch with
`walk_records` would take 1.4 times as long as with `rewrite.Walk`. Each reader either returns the
same records, leaves the batch to another reader, or raises `CorruptData`
(tests/property/test_record_readers.py compares all readers).

    reader                          of each record           used for
    record.walk_records             everything               replays by coordinators, tools, batches
                                                             that `read_uniform` does not read; the
                                                             reference for the tests
    uniform_records.read_uniform    all but headers,         consumers, which do not use numpy;
                                    in columns of bytes      16 records of a layout on average
    rewrite.Walk                    everything, keeps none   admitting doubtful batches, and batches
                                                             of topics with rules for records; runs
                                                             in steps, because it is on the loop
    plausibility.is_plausible       the first and the last   admitting all other batches; searches
                                                             once from the end (decision 18)
    record_starts.walk_starts       its length               `fields`, and records that compaction
                                                             has walked before
    columns.iterate_columns         everything, in Arrow     Spark and data frames; all batches of a
                                                             fetch, with the first suitable reader:
      record_tables.rows_of           equal strides            256 records per stretch on average
      layout_classes.uniform_fields   few layouts, mixed       at most eight classes
      fields.any_fields               any                      everything else, and all errors
    storage.compaction.sieve        key, times, tombstone    the cleaner; hashes keys while reading,
                                                             and keeps records as bytes

`record_layout` determines where the fields of one record begin, and the column readers apply this
to all records that have the same layout. There are two writers: `record.BatchBuilder`, and
`column_encoder` for columns.
"""
