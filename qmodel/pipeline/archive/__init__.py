"""The archive: all events of one or more namespaces, as Parquet files."""
