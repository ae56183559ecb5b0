"""What a change record of Debezium says of a row."""
