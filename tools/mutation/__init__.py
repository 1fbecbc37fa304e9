"""Mutation testing: plant faults in the Lua library and in the model, and measure how many of them the suite notices.

A mutant is a file with one small change (`lua`, `python`). The suite (`suite`) is recorded once on the right code
(`replay` for the Lua library, `model` for the model). Each mutant executes the suite until a difference is found. A
mutant without a difference is either equivalent, and `mutants.toml` gives the reason (`triage`), or it shows a gap of
the suite. `distil` chooses a much shorter suite that notices nearly as many mutants.
"""
