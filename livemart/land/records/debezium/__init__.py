"""Change records of Debezium: the change of a row that each one holds."""
