"""Parts of the application that Django finds by their place."""
