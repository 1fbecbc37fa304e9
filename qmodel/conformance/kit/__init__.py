"""The kit: what the author of a binding, in any language, needs to check it against the model.

A *driver* is the author's program: it reads operations as JSON lines on its standard input, executes them with the
binding, and answers on its standard output (`protocol`). The kit starts the driver (`driver`), sends it histories,
compares its answers with the model's (`judge`), shortens a history with a difference, and names the violated
requirement (`requirements`). `docs/binding.md` is the introduction.
"""
