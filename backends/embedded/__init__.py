"""`embedded://`: the Lua library in this process, on a keyspace in memory."""
