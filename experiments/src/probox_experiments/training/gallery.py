"""What trained detectors say of single edges: a few scenes with their ellipses, and every edge's sigma."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.support.optional import require
from probox_experiments.claims import Claim, ResultTable
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, GREEN, GREY, ORANGE, VERMILION, new_figure
from probox_experiments.running import Run
from probox_experiments.training.arms import PPDQ_ARMS, Settings, find_arm
from probox_experiments.training.comparison import CORRELATION, EXTRA, WIDER
from probox_experiments.training.scenes import KINDS, OCCLUDED, OUTLINE, SHARP, SIDE, draw_scenes, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHOWN = 4
"""So many scenes are drawn."""
RADIUS = 2.0
"""Ellipses are drawn at so many sigmas: 86 % of a corner's probability lie inside."""


def training_scenes(
    *,
    arms: Sequence[str] = ("nll", *PPDQ_ARMS),
    seed: int = 0,
    images: int = 150,
    settings: Settings | None = None,
    run: Run | None = None,
) -> ResultTable:
    """Train some arms once, and look at every edge of the first test scenes.

    Returns
    -------
    ResultTable
        `arm`, `scenes` and `scenes_seed` (how many were drawn with which seed), `image`, `object`, `edge` (0 to 3: x1,
        y1, x2, y2), `kind`, `nominal`, `true`, `sigma`; `mean` and `predicted`, the mean and sigma that were predicted.
    """
    require("torch", extra=EXTRA, purpose="experiment training-scenes needs")
    from probox.evaluation.evaluate import evaluate
    from probox_experiments.training.arms import Edges
    from probox_experiments.training.fitting import found_by

    run, chosen = run or Run(), settings or Settings()
    rows: list[dict[str, Any]] = []
    for done, name in enumerate(arms):
        if run.progress is not None:
            run.progress(done, len(arms))
        scenes, found, _ = found_by(find_arm(name), 100 * seed, chosen)
        edges = Edges.of(scenes, evaluate(scenes.truth, found, measures=("map",), threads=run.threads))
        for place in np.flatnonzero(scenes.image_rows[edges.objects] < images).tolist():
            row = int(edges.objects[place])
            rows += [
                {
                    "arm": name,
                    "scenes": scenes.count,
                    "scenes_seed": scenes.seed,
                    "image": int(scenes.image_rows[row]),
                    "object": row,
                    "edge": edge,
                    "kind": KINDS[int(scenes.kinds[row, edge])],
                    "nominal": float(scenes.nominal[row, edge]),
                    "true": float(scenes.boxes[row, edge]),
                    "sigma": float(scenes.sigmas[row, edge]),
                    "mean": float(edges.means[place, edge]),
                    "predicted": float(edges.predicted[place, edge]),
                }
                for edge in range(4)
            ]
    if run.progress is not None:
        run.progress(len(arms), len(arms))
    return ResultTable.from_rows(rows)


def claims_of_training_scenes(table: ResultTable) -> list[Claim]:
    """Judge single edges of one training of each form of the loss."""
    claims = []
    for form in PPDQ_ARMS:
        rows = table.where(arm=form)
        if not len(rows):
            continue
        correlation = float(np.corrcoef(np.log(rows["predicted"]), np.log(rows["sigma"]))[0, 1])
        title = find_arm(form).title
        claims.append(
            Claim(
                f"Trained once with {title}, predicted and true sigma correlate above {CORRELATION:g}",
                correlation > CORRELATION,
                f"correlation of the logarithms {correlation:.3f}, {len(rows):,} edges",
                f"above {CORRELATION:g}",
                {"log sigma correlation": correlation},
            )
        )
        kinds, sigmas = rows["kind"].reshape(-1, 2), rows["predicted"].reshape(-1, 2)
        pair = {KINDS[SHARP], KINDS[OCCLUDED]}
        mixed = np.array([set(corner) == pair for corner in kinds.tolist()], dtype=bool)
        first = kinds[mixed, 0] == KINDS[OCCLUDED]
        longer = np.where(first, sigmas[mixed, 0] > sigmas[mixed, 1], sigmas[mixed, 1] > sigmas[mixed, 0])
        share = float(longer.mean()) if len(longer) else np.nan
        claims.append(
            Claim(
                f"Trained once with {title}, a corner's ellipse is longer across an occluded edge than a sharp one",
                share > WIDER,
                f"share {share:.3f} of {len(longer)} corners with one of each",
                f"above {WIDER:g}",
                {"share": share},
            )
        )
    return claims


def draw_training_scenes(table: ResultTable) -> Figure:
    """Draw scenes with the ellipses of one arm above, and predicted against true sigmas of all arms below."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(table["arm"].tolist()))
    shown = next((name for name in PPDQ_ARMS if name in names), names[0])
    figure = new_figure(9.6, 6.4)
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.12])
    above, below = parts
    own = table.where(arm=shown)
    chosen = _telling(own)
    pictures = render(draw_scenes(int(own["scenes"][0]), int(own["scenes_seed"][0])))
    for axes, image in zip(np.ravel(above.subplots(1, SHOWN)), chosen, strict=False):
        _scene(axes, pictures[image], own.where(image=image))
        axes.set_title(f"scene {image + 1}")
    above.legend(
        handles=[
            Line2D([], [], color=BLUE, lw=1.6, label=f"predicted ({find_arm(shown).title}), ellipses of 2 sigma"),
            Line2D([], [], color=ORANGE, lw=1.4, ls="--", label="right: nominal corners and sigmas"),
            Line2D([], [], color=VERMILION, lw=1.3, ls=":", label="true box"),
        ],
        loc="outside lower center",
        ncols=3,
    )
    for axes, name in zip(np.ravel(below.subplots(1, len(names), sharey=True, squeeze=False)), names, strict=True):
        _scatter(axes, table.where(arm=name), find_arm(name).title)
    return figure


def _telling(rows: ResultTable) -> list[int]:
    """Return the first images that show the most: sharp and occluded edges, and several objects."""
    images = np.unique(rows["image"])
    worth = []
    for image in images.tolist():
        kinds = rows.where(image=image)["kind"].tolist()
        worth.append(len(set(kinds)) * 10 + len(kinds))
    order = np.argsort(-np.array(worth), kind="stable")
    return sorted(images[order[:SHOWN]].tolist())


def _scene(axes: Axes, picture: npt.NDArray[np.uint8], rows: ResultTable) -> None:
    from matplotlib.patches import Ellipse, Rectangle

    axes.imshow(picture.transpose(1, 2, 0), extent=(0, SIDE, SIDE, 0), interpolation="nearest")
    for number in np.unique(rows["object"]).tolist():
        own = rows.where(object=number)
        true, right, mean = (own[name] + OUTLINE for name in ("true", "nominal", "mean"))
        sides = (true[2] - true[0], true[3] - true[1])
        axes.add_patch(Rectangle((true[0], true[1]), *sides, fill=False, ec=VERMILION, lw=1.3, ls=":"))
        looks: tuple[tuple[Any, Any, dict[str, Any]], ...] = (
            (right, own["sigma"], {"ec": ORANGE, "lw": 1.4, "ls": "--"}),
            (mean, own["predicted"], {"ec": BLUE, "lw": 1.6}),
        )
        for place, sigmas, look in looks:
            for first in (0, 2):
                size = 2 * RADIUS * sigmas[first : first + 2]
                axes.add_patch(Ellipse((place[first], place[first + 1]), *size.tolist(), fill=False, **look))
    axes.set(xticks=[], yticks=[], xlim=(0, SIDE), ylim=(SIDE, 0))
    axes.grid(False)


def _scatter(axes: Axes, rows: ResultTable, title: str) -> None:
    colours = dict(zip(KINDS, (GREY, GREEN, BLUE, ORANGE), strict=True))
    # Sharp edges all have the same sigma: they are spread a little to be seen.
    aside = np.exp(np.random.default_rng(0).uniform(-0.08, 0.08, len(rows)))
    axes.plot([0.3, 6], [0.3, 6], color="#C9C9C9", lw=3, zorder=1)
    for kind in KINDS:
        now = rows["kind"] == kind
        x = rows["sigma"][now] * (aside[now] if kind == KINDS[SHARP] else 1.0)
        axes.plot(x, rows["predicted"][now], "o", ms=2.4, mew=0, alpha=0.55, color=colours[kind], label=kind)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [0.5, 1.0, 2.0, 4.0]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.set(xlim=(0.38, 4.4), ylim=(0.25, 6.5), xlabel="true sigma of an edge (pixels)")
    axes.set_ylabel("predicted sigma")
    correlation = np.corrcoef(np.log(rows["predicted"]), np.log(rows["sigma"]))[0, 1]
    axes.set_title(f"{title}: correlation {correlation:.2f}")
    axes.legend(loc="lower right", markerscale=2.0, handlelength=1.0)


TRAINING_SCENES = Experiment(
    name="training-scenes",
    section="none: ours",
    varied="edges of test scenes, sharp, blurred, occluded or faded, as detectors of `training` see them",
    claim="the sigma of an edge is that of what is to be seen of it",
    function=training_scenes,
    judge=claims_of_training_scenes,
    draw=draw_training_scenes,
    extra=EXTRA,
    in_all=False,
    own_presets=True,
)
