"""Tables: versions, files, changes, commits of Arrow rows; knows no Spark."""
