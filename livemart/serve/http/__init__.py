"""The parts of HTTP that all routes share."""
