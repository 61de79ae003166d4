"""Real images: where they come from, how they are decoded, checked and kept, and as a spec."""
