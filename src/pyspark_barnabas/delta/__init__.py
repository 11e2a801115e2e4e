"""Writes to Delta tables: tasks write Parquet files, and the driver commits them to the log."""
