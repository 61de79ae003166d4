"""What does a run say about the papers?

A run that has a paper's hyper-parameters is judged on every claim that it decides by itself. Here:
the robust classifier f_FD with the paper's threshold, on six seeds.
"""

import unmix

experiment = unmix.Experiment(
    data=unmix.Clusters(k=10, d=3072),
    net=unmix.FeatureDecoupling(beta=0.5),
    train=unmix.NoTraining(),
    samples=unmix.Samples(train=1, test=20),
    seeds=range(6),
)
run = unmix.run(experiment)
print(unmix.probe(run, "mixtures"))
print(unmix.verdicts(run))
