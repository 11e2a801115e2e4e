"""Delta tables as a sink: tasks write Parquet files, the driver commits them to the table's log."""
