"""Writes to Delta tables: tasks write Parquet files, the driver commits them to the table's log."""
