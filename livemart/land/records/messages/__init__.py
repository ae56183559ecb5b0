"""Records of logs as messages: content with a key, headers and a time beside it."""
