"""Measurements for the claims: each takes the evidence and settings, and returns a sample."""
