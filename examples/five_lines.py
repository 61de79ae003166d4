"""An experiment as a value, run over 8 seeds, a probe, an attack curve, a table of verdicts."""

import unmix

data, net = unmix.Clusters(k=10, d=3072), unmix.TwoLayer(m=5)
train = unmix.GradientDescent(eta=1e-3, steps=100)
run = unmix.run(unmix.Experiment(data=data, net=net, train=train, seeds=range(8)))
print(unmix.probe(run, "cosines"))
print(unmix.robustness(run, radii=(0.2, 0.25, 0.3, 0.35, 0.4)))
print(unmix.verdicts(run))
