"""Two labels teach averages, one label a cluster teaches features.

The same points, learned from two labels and from ten: each column is a neuron (or the mean of a
class's neurons), each row a feature.
"""

import unmix
from unmix import style

base = unmix.Experiment(
    data=unmix.Clusters(k=10, d=512),
    net=unmix.TwoLayer(m=5),
    train=unmix.GradientDescent(eta=0.006, steps=100),
    samples=unmix.Samples(train=1000, test=50),
    seeds=(0, 1, 2),
)
runs = {"2 labels": unmix.run(base), "10 labels": unmix.run(base.with_("net.kind=k-class"))}

with style.canvas(7, 3.2) as canvas:
    panels = canvas.subplots(1, 2)
    for axes, (name, run) in zip(panels, runs.items(), strict=True):
        probe = unmix.probe(run, "cosines")
        mesh = style.cosine_matrix(axes, probe["matrix"].mean(0), digits=1)
        axes.set(title=name, xlabel="weight", ylabel="centre")
        mixed = unmix.probe(run, "mixtures")["features"].mean()
        print(f"{name:>9}: {float(mixed):.2f} features a neuron")
    style.cosine_scale(canvas, mesh, list(panels))
canvas.savefig("mixing.png", dpi=150, facecolor=style.PAPER)
