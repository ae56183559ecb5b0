"""Reading SQL: parsing, flattening, functions, determinism, used columns."""
