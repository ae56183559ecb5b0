"""Which version of a key wins, and what a delete leaves behind."""
