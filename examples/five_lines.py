"""An experiment as a value, run over 8 seeds, a probe, an attack curve, a table of verdicts."""

import unmix

b0 = unmix.Experiment(data=unmix.Clusters(), net=unmix.TwoLayer(), train=unmix.GradientDescent())
run = unmix.run(b0.with_("seeds=[0, 1, 2, 3, 4, 5, 6, 7]"))
print(unmix.probe(run, "cosines"))
print(unmix.robustness(run, radii=(0.2, 0.25, 0.3, 0.35, 0.4)))
print(unmix.verdicts(run))
