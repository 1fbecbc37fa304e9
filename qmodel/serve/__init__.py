"""`qmodel serve`: a server that speaks the protocol of Redis, in front of the model or of any other backend.

Network:       resp (parses and writes the protocol), session (one connection), host (the state that all sessions
               share), server (listens).
Commands:      commands (the table), dispatch (executes them), and the modules that add commands to the table:
               connection, debug, info, library, pubsub, scripts, transactions, wait.
Jobs:          functions (calls on the model), namespaces (one store each), replies (written for the wire), proxy (calls
               on any other backend), channels and known_scripts (what pubsub and scripts keep).
Disk:          journal (every change, written before its reply is sent), snapshot_bytes (the whole state).
For bindings:  faults (injected on purpose), judge (finds mistakes of clients), record (writes calls as vectors).
"""
