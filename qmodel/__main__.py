"""`python -m qmodel`: the command line, where the script is not on the PATH."""

from qmodel.cli import main

main()
