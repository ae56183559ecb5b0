"""The connections of a server: how many there may be, and how long each may keep it waiting."""
