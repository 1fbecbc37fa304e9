"""The verbs: one function for each operation. First it checks what may be refused; then, after a blank line, it changes
the store.
"""
