"""Answers that match a regular expression, a JSON schema or a list of choices, exactly, on a canvas of fixed length.

In the order of the work: ``expression`` reads the options, ``schema`` translates JSON schemas, so that every constraint
is one regular expression; ``child`` turns it into an automaton over bytes, in a process of its own; ``automaton`` lifts
that to tokens; ``compile`` drives these and keeps the results; ``walks`` says which tokens a position may hold and
which commits go together; ``guest`` applies both in the loop.
"""
