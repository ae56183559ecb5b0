"""From SQL scopes to relations."""
