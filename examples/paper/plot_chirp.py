"""
========================
A chirp in a time series
========================

A periodic series can be folded into a matrix with one period per row. The matrix is the
product of the shape of a period and the loudness of the periods, which has order 1. A
chirp, a short signal with rising frequency, is an interaction between the position in a
period and the period. Therefore order 1 has an error where the chirp is. For a matrix,
order 2 is exact.

If the same series is folded into ten modes of length 2, there are ten orders, and each
preserves more than the previous order.
"""

# %%
# The series
# ----------
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pnl.geometry import TensorPoset, many_body_projection

t = np.arange(1024)
period, place = np.divmod(t, 32)
carrier = (1.5 + np.cos(2 * np.pi * place / 32)) * (
    1.2 + 0.5 * np.sin(2 * np.pi * period / 32)
)
window = np.exp(-0.5 * ((t - 540) / 40) ** 2)
series = carrier + 0.4 * window * np.sin(0.0025 * (t - 440) ** 2)
chirp = window > 0.05
mass = series.sum()


# %%
# Approximations
# --------------
# ``shape`` is the shape of the folded series. The error is the sum of the absolute
# deviations, as a share of the sum of the series in the same part.
def approximate(shape, order):
    """Return the series up to an order, and the number of its coordinates."""
    poset = TensorPoset(shape)
    found = many_body_projection((series / mass).reshape(shape), poset, order)
    return mass * found.prob.ravel(), int((poset.order <= order).sum())


folds = {"matrix": (32, 32), "ten modes": (2,) * 10}
orders = {"matrix": (1, 2), "ten modes": (1, 2, 3, 4, 5)}
kept, inside = {}, {}
print(f"chirp: {chirp.sum()} of {len(t)} samples")
for name, shape in folds.items():
    for order in orders[name]:
        kept[name, order], n_numbers = approximate(shape, order)
        off = np.abs(kept[name, order] - series)
        at, beside = (off[w].sum() / series[w].sum() for w in (chirp, ~chirp))
        inside[name, order] = at, beside
        print(
            f"{name:9} order {order}: {n_numbers:4} numbers; error {at:6.2%} in the "
            f"chirp, {beside:6.2%} elsewhere"
        )

# %%
# Claims of the paper and results
# -------------------------------
at, beside = inside["matrix", 1]
claims = [
    (
        "the error of order 1 is largest in the chirp",
        f"error {at:.1%} in the chirp, {beside:.1%} elsewhere",
        [at > 5 * beside],
    ),
    (
        "order 2 has no error",
        f"error {max(inside['matrix', 2]):.0e}; order 2 preserves a matrix completely",
        [max(inside["matrix", 2]) < 1e-9],
    ),
]
for paper, seen, holds in claims:
    verdict = "agrees" if all(holds) else "in part" if any(holds) else "differs"
    print(f"\npaper:   {paper}\nseen:    {seen}\nverdict: {verdict}")

# %%
# The picture
# -----------
# Top: the series as a matrix. Time runs along the rows, from the top. Bottom: the
# series and its errors. The chirp is gray.
figure = plt.figure(figsize=(9, 7.4), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=(1, 1.25))
panels = above.subplots(1, 4)
shown = {
    "series": series,
    "order 1": kept["matrix", 1],
    "order 1 − series": kept["matrix", 1] - series,
    "order 2 − series": kept["matrix", 2] - series,
}
for axis, (title, values) in zip(panels, shown.items(), strict=True):
    folded = values.reshape(32, 32)
    if "−" in title:
        error = axis.imshow(folded, cmap="RdBu_r", vmin=-0.4, vmax=0.4)
    else:
        signal = axis.imshow(folded, cmap="gray_r", vmin=0, vmax=series.max())
    axis.set(title=title, xlabel="place in a period", yticks=[])
panels[0].set_ylabel("period")
above.colorbar(signal, ax=panels[:2], label="value", shrink=0.8)
above.colorbar(error, ax=panels[2:], label="error", shrink=0.8)

lines = below.subplots(3, 1, sharex=True)
lines[0].plot(t, series, color="black", lw=0.8, label="series")
lines[0].plot(t, kept["matrix", 1], color="C1", lw=0.8, label="matrix, order 1")
lines[0].set(ylabel="value")
for axis, name, some in ((lines[1], "matrix", (1, 2)), (lines[2], "ten modes", (3, 4))):
    for k, order in enumerate(some):
        error = kept[name, order] - series
        axis.plot(t, error, color=f"C{k + 1}", lw=0.8, label=f"{name}, order {order}")
    axis.set(ylabel="error", ylim=(-0.6, 0.6))
for axis in lines:
    axis.axvspan(*t[chirp][[0, -1]], color="0.9", zorder=0)
    axis.legend(loc="upper right", fontsize="small", ncols=2)
    axis.margins(x=0)
lines[-1].set_xlabel("time")
figure.suptitle("A chirp is an interaction: order 1 misses it")
plt.show()
