"""`python -m qmodel.cli`."""

from qmodel.cli import main

main()
