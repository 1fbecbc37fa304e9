"""Integrations of qmodel with other frameworks. Only the module of a framework needs that framework."""
