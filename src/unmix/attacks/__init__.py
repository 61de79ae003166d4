"""Attacks: how small a perturbation fools a run? Upper bounds of the robust radius."""
