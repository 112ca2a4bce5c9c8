"""Choices with probabilities: one forward gives the probability of each.

A question is a run of masks; each choice is one filling of it. The probability of a choice is the product of those of
its tokens, all from the same forward, over the sum of all choices. Questions of one text are read in the same forward.
``questions`` lays them out, ``blocks`` does so for block-causal models, and ``answers`` reads them.
"""
