"""Engines: several ways to take the same gradient-descent steps.

All share one small interface (see `base`). Papers, probes and claims never mention an engine;
`reference` is what the others are tested against.
"""
