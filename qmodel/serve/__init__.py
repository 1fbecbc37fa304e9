"""`qmodel serve`: a server that speaks the protocol of Redis, in front of the model or of any other backend.

The line:      resp (the protocol, read and written), session (one connection), host (what all share), server (listens).
The commands:  commands (the table), and those that enter commands in it: channels, debugging, facts, library, scripts,
               transactions, waiting.
The jobs:      functions (calls on the model), spaces (its namespaces), writing (replies for the wire); passing
               (calls on any other backend).
The disk:      journal (every change, before it is answered), storing (the whole state).
For bindings:  faults (on purpose), judging (what is wrong with what is sent), recording (as vectors).
"""
