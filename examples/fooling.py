"""A net that averages is easy to fool.

Robust accuracy within each radius, judged on the union of all attacks; radii in units of a centre's
length, where nobody can withstand more than 0.707.
"""

import unmix
from unmix import style

base = unmix.Experiment(
    data=unmix.Clusters(k=6, d=256),
    net=unmix.TwoLayer(m=3),
    train=unmix.GradientDescent(eta=0.012, steps=100),
    samples=unmix.Samples(train=600, test=20),
    seeds=(0, 1),
)
runs = {"2 labels": unmix.run(base), "6 labels": unmix.run(base.with_("net.kind=k-class"))}
radii = tuple(i / 20 for i in range(1, 17))

with style.canvas() as canvas:
    axes = canvas.subplots()
    for name, run in runs.items():
        attacked = unmix.robustness(run, radii)
        axes.plot(radii, attacked.robust_accuracy().mean(0), label=name)
        print(f"{name}: mean radius {float(attacked.mean_radius().mean()):.3f}")
    axes.set(xlabel="radius", ylabel="robust accuracy", ylim=(0, 1.05))
    axes.legend()
canvas.savefig("fooling.png", dpi=150, facecolor=style.PAPER)
