"""The dialects take part in conformance: generated calls, and every reply, message and the whole state compared."""
