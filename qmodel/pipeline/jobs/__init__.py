"""Turn rows into jobs, and the results of jobs into rows."""
