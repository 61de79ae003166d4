"""Measurements of this paper that are more than one value of one probe.

Each takes the evidence and the claim's settings and returns one value a replica.
"""
