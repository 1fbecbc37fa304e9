"""Rules that several operations share: each has a twin of the same name in `lua/rules`."""
