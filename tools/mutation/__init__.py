"""Mutation testing: faults planted in the Lua library and in the model, and how many of them the suite notices.

A mutant is a file with one small change (`lua`, `python`). The suite (`suite`) is recorded once on what is right
(`replay` for the Lua, `model` for the model) and each mutant executes it until it is seen to differ. What is not
seen to differ is equivalent, and `mutants.toml` says why (`triage`), or a gap of the suite. From which step noticed
which mutant a much shorter suite is made that notices nearly as many (`distil`).
"""
