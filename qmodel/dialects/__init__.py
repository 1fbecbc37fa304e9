"""Dialects: translate the calls of other queues' clients into operations of the catalogue.

A dialect makes no decisions. It checks the form of a call, executes operations of the engine, and writes the reply in
the form that its clients expect.
"""
