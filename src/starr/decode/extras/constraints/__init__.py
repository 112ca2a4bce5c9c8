"""Answers that match a regular expression, a JSON schema or a list of choices, exactly, on a canvas of fixed length.

In the order of the work: ``expression`` and ``schema`` (with ``scalars``, ``constants``, ``containers`` and their
``pieces``) write every constraint as one regular expression; ``child``
turns it into an automaton over bytes, in a process of its own; ``automaton`` lifts that to tokens; ``compiled`` keeps
the results; ``reach`` says which tokens a position may hold, ``joint`` which of several commits go together, and
``guest`` does both in the loop.
"""
