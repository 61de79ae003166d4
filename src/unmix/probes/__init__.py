"""Probes: what did a run learn? Each is a function Run -> Measured."""
