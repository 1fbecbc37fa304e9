"""How things are shown: formats, durations, histograms and actions, for the pages, top and the command line."""
