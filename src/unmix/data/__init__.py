"""Distributions: what the networks are trained on."""
