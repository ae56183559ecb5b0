"""Which version of a key wins, and the trace of a delete."""
