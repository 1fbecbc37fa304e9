"""Jobs over HTTP, for programs that are not Python. `docs/http.md` is the way in."""
