"""The figures of this paper, drawn from runs."""
