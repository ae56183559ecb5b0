"""What HTTP needs, whatever is asked."""
