"""Every measurable statement of the paper, in its corrected form, section by section."""

from unmix.papers.averaging.claims import (
    appendix_a,
    appendix_b,
    appendix_c,
    appendix_d,
    beyond,
    experiments,
    main_results,
)

CLAIMS = (
    *main_results.CLAIMS,
    *appendix_a.CLAIMS,
    *appendix_b.CLAIMS,
    *appendix_c.CLAIMS,
    *appendix_d.CLAIMS,
    *experiments.CLAIMS,
    *beyond.CLAIMS,
)
