"""From raw records to typed rows: one meaning for small and large loads, JSON and CSV."""
