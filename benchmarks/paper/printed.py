"""What the paper prints: accuracy in percent, with its spread over bootstraps."""

DATA_SETS = (
    "mnist",
    "cifar10",
    "speech",
    "sonar",
    "taiwan_bankruptcy",
    "wine_quality",
)

_TABLE_1 = {
    "none": "97.98 .19 88.57 .57 84.48 .50 88.10 8.58 96.54 .56 55.00 1.69",
    "STD": "97.98 .24 89.89 .44 82.98 .50 85.24 7.66 96.17 .57 57.85 1.81",
    "PNL (paper)": "97.91 .21 88.07 .46 84.35 .37 93.81 4.54 96.53 .47 59.03 1.74",
    "AE": "97.97 .25 88.36 .46 83.13 .32 82.86 7.59 95.92 .62 57.23 1.67",
    "mixup": "96.45 .23 86.60 .49 81.85 .61 89.29 4.97 96.55 .68 57.76 1.67",
    "manifold mixup": "97.52 .30 88.02 .39 83.06 .54 91.19 5.06 96.44 .53 58.70 1.74",
}
# Results for MNIST, CIFAR-10 and Speech Commands, each at four sizes.
_TABLES_4_TO_6 = {
    "none": "98.14 98.08 98.10 98.12 89.06 89.32 88.63 88.83 83.68 83.26 84.72 84.16",
    "STD": "92.08 92.00 92.02 92.16 90.42 92.00 90.60 90.92 84.34 83.84 84.98 84.25",
    "AE": "97.91 97.86 97.90 97.97 88.56 88.76 88.42 86.49 82.30 83.49 84.72 85.21",
    "PNL (paper)": "98.01 98.07 97.93 97.55 88.72 88.32 88.53 88.67 "
    "84.20 84.61 84.56 84.43",
}
SIZES = (0.25, 0.5, 0.75, 1.0)


def table_1():
    """Return (accuracy, spread) by data set and sampler."""
    found = {}
    for sampler, text in _TABLE_1.items():
        values = [float(value) for value in text.split()]
        for i, name in enumerate(DATA_SETS):
            found[name, sampler] = values[2 * i], values[2 * i + 1]
    return found


def tables_4_to_6():
    """Return the accuracy by data set, size and sampler."""
    cells = [(name, size) for name in DATA_SETS[:3] for size in SIZES]
    return {
        (*cell, sampler): float(value)
        for sampler, text in _TABLES_4_TO_6.items()
        for cell, value in zip(cells, text.split(), strict=True)
    }
