"""`qmodel serve`: a server that speaks the protocol of Redis, in front of the model or of any other backend.

resp        the protocol, read and written          session     one connection
reading     operations from the wire                commands    the table; channels, facts, library,
writing     replies for the wire                                transactions, waiting enter commands
spaces      the model's namespaces                  host        what all sessions share
functions   calls on the model                      server      listens and stops
passing     calls on any other backend
"""
