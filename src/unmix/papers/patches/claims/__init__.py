"""Every measurable statement of the paper, section by section."""

from unmix.papers.patches.claims import beyond, images, main_results, process, simulations

CLAIMS = (
    *main_results.CLAIMS,
    *process.CLAIMS,
    *simulations.CLAIMS,
    *beyond.CLAIMS,
    *images.CLAIMS,
)
