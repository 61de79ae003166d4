"""Every measurable statement of the paper, section by section."""

from unmix.papers.patches.claims import (
    appendices,
    beyond,
    images,
    main_results,
    process,
    simulations,
)

CLAIMS = (
    *main_results.CLAIMS,
    *process.CLAIMS,
    *appendices.CLAIMS,
    *simulations.CLAIMS,
    *beyond.CLAIMS,
    *images.CLAIMS,
)
