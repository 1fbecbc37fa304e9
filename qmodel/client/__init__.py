"""The clients: the catalogue as Python objects. The synchronous client is generated from the asynchronous one."""
