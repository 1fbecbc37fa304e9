"""Read events as pages, columns and Arrow tables, each proved to have no gaps."""
