"""What a running system tells of itself: log lines, metrics, traces, and whether it is well.

Each is a module of its own, imported by who wants it: `logs` and `health` need nothing else, `prometheus` and `otel`
the extra of their name.
"""
