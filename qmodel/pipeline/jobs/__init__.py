"""Rows become jobs, and results of jobs become rows."""
