"""Any served model: its rows and its changes."""
