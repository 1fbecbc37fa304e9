"""Dialects: what the clients of other queues say, translated into operations of the catalogue.

A dialect decides nothing. It checks the form of what it is told, asks the engine, and puts the reply into the words
that its clients expect.
"""
