"""How jobs are shown: formats, words and actions, written once for the pages, `qmodel top` and the command line."""
