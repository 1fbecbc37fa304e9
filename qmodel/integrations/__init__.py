"""qmodel in other people's frameworks. Each module needs its framework, and nothing else does."""
