"""Objects by name, below a folder of a disk or a prefix of a bucket."""
