"""`redis://` and `valkey://`: each operation is one call of the Lua function library."""
