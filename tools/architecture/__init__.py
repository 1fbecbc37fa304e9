"""The plan of the rooms: which first-level packages there are, what each may import, and a picture of it.

    python -m tools.architecture    prints the arrows between rooms, and any circle of imports

`rooms.py` has the table that tests/test_architecture.py holds, `imports.py` reads the source, `picture.py` and
`page.py` make docs/architecture.svg and the table in docs/architecture.md.
"""
