"""Records whose values have types: files of Parquet and Avro."""
