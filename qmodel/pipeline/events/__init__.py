"""Events as pages, columns and Arrow tables, each proved to be gapless."""
