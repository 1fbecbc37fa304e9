"""Tools that make or measure the project and are not shipped with it."""
