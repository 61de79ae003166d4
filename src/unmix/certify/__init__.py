"""Certificates: below which radius can nothing fool a run? Lower bounds, and exact radii."""
