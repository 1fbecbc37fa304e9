"""Observe a running system: log lines, metrics, traces and health probes.

Each is a separate module, imported only where it is used: `logs` and `health` need no other package, `prometheus` and
`otel` need the extra of their name.
"""
