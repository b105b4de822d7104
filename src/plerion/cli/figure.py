"""The figure of `index build`: what attributes and bits buy."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from plerion.content.errors import InputError
from plerion.content.schema import Schema
from plerion.pipeline.jobs.build import Curves

mpl.use("Agg")
import matplotlib.pyplot as plt

_LINE, _WON = "#0072b2", "#d55e00"  # told apart by everybody


def draw(path: Path, schema: Schema, curves: Curves) -> None:
    """Two panels: the rate against selected attributes and against bits; a cross marks the index that won."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"{path.name!r} is no figure", "end it in .png, .svg or .pdf")
    attributes, bits, rate = curves.won
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    panels = (
        (left, curves.by_attributes, f"selected attributes of {len(schema.attributes)}", attributes),
        (right, curves.by_bits, "bits of a code", bits),
    )
    for panel, points, label, won in panels:
        panel.plot(*zip(*points, strict=True), marker="o", color=_LINE, label=curves.method)
        panel.plot([won], [rate], marker="X", markersize=11, linestyle="", color=_WON, label="built")
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
    left.set_ylabel("false positives, share of deliveries")
    left.set_ylim(0, 1)
    left.legend()
    figure.suptitle("Rates on events that the index was not made from")
    figure.savefig(path, dpi=150)
    plt.close(figure)
