"""Section 8 on deep networks: listed, since they need CIFAR-10 and GPUs."""

from unmix.papers.purification.claims.base import DEEP, listed

CLAIMS = (
    listed("fig-1", "First-layer features of AlexNet are purified", "Fig 1", DEEP, "experiment"),
    listed("fig-2-deep", "Cosines of AlexNet and ResNet-34", "Fig 2", DEEP, "experiment"),
    listed("fig-4", "Images from sparse robust features of AlexNet", "Fig 4", DEEP, "experiment"),
    listed("fig-5-deep", "Activations of WRN-28-10 become sparse", "Fig 5", DEEP, "experiment"),
    listed("fig-6", "Deep features are purified", "Fig 6", DEEP, "experiment"),
    listed(
        "fig-7-deep", "Perturbations of ResNet-34 look like images", "Fig 7", DEEP, "experiment"
    ),
    listed("fig-8-deep", "Tickets of AlexNet", "Fig 8", DEEP, "experiment"),
    listed("fig-10", "Deep features, clean and robust", "Figs 10, 11", DEEP, "experiment"),
    listed("fig-12-deep", "Sparse reconstruction of images", "Fig 12", DEEP, "experiment"),
    listed("fig-13", "Stronger attackers purify more", "Fig 13", DEEP, "experiment"),
    listed(
        "table-1", "ResNet-34: robust accuracies by initialisation", "Table 1", DEEP, "experiment"
    ),
    listed(
        "sec-8.2",
        "Layer-wise protocol: robust accuracy 0 after stage 2",
        "section 8.2",
        DEEP,
        "experiment",
    ),
)
