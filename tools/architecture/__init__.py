"""The plan of the rooms: which first-level packages there are, what each may import, and a picture of it.

    python -m tools.architecture    prints the arrows between rooms, and any circle of imports

`rooms.py` has the table that tests/test_architecture.py holds, `imports.py` reads the source, `picture.py`
makes docs/architecture.svg. The page docs/architecture.md is made by tools/docs/architecture.py.
"""
