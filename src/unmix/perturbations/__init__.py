"""What adversarial training adds to its points: one perturbation a point, within a radius."""
