"""The kit: what the author of a binding, in any language, needs to check it against the model.

A *driver* is the author's program: it reads operations as JSON lines on its standard input, executes them with the
binding, and answers on its standard output (`protocol`). The kit starts it (`driver`), gives it histories, compares
what it answers with what the model does (`judge`), shortens what differs, and names the requirement that is broken
(`requirements`). `docs/binding.md` is the way in.
"""
