"""False detections anywhere in the image, before, after or around the right one: appendix C.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.measures.boxes.matching import MAX_DETECTIONS
from probox_experiments.claims import EXACT, Claim, equals, not_measured
from probox_experiments.experiment import Experiment
from probox_experiments.figures import BLUE, measure_lines, new_figure, shown
from probox_experiments.running import Run
from probox_experiments.scenes import boxes_in_one_image, square_scene
from probox_experiments.table import ResultTable, presets_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FALSE_POSITIONS", "false_positions"]

PLACES = ("first", "last", "anywhere")
"""Where the right detection stands among all that are handed in."""

LIMIT = 3.0
"""Standard errors that a mean may be off: one mean in 370 is further off by chance."""


def false_positions(
    *,
    counts: Sequence[int] = (0, 1, 2, 3, 5, 10),
    repeats: int = 40,
    side: int = 50,
    image: int = 200,
    seed: int = 0,
    run: Run | None = None,
) -> ResultTable:
    """Put false detections, as sure as the right one, anywhere in the image but on the object.

    Parameters
    ----------
    counts : sequence of int
        How many false detections.
    repeats, seed : int
        How often false boxes, and the place of the right one among them, are drawn; where that starts.
    side, image : int
        Width and height of the object and of the image.
    run : Run, optional
        Threads, progress, checkpoint.

    Returns
    -------
    ResultTable
        `place` of the right detection among all (``first``, ``last`` or ``anywhere``), `false`, `repeat`; `before`
        (how many false ones go before it); `PDQ`, `PDQ_paper`, `mAP`, `moLRP`.
    """
    run = run or Run()
    if not 0 < side <= image // 2:
        raise InputError(f"expected an object of at most half the image's width, but got {side} of {image} pixels")
    if not all(0 <= count < MAX_DETECTIONS for count in counts):
        raise InputError(
            f"expected up to {MAX_DETECTIONS - 1} false detections, but got {', '.join(map(str, counts))}",
            remedy=f"mAP takes {MAX_DETECTIONS} detections of an image and class, so the right one must be among them",
        )
    truth = square_scene(side, image)

    def point(place: str, false: int, repeat: int) -> dict[str, float]:
        rng = np.random.default_rng([seed, repeat, false])
        wrong = boxes_beside(truth.masks.boxes[0], false, image, rng)
        # Drawn in any case, so that the same false boxes are tried in all three places.
        any_place = int(rng.integers(0, false + 1))
        before = {"first": 0, "last": false, "anywhere": any_place}[place]
        boxes = np.concatenate([wrong[:before], truth.masks.boxes, wrong[before:]])
        found = boxes_in_one_image(truth, boxes, [1.0] * len(boxes))
        return {"before": float(before)} | run.measure(truth, found)

    points: list[dict[str, Any]] = [
        {"place": place, "false": int(count), "repeat": repeat}
        for place in PLACES
        for count in counts
        # One draw is enough to show that boxes beside the object are like any others; places need many.
        for repeat in range(repeats if place == "anywhere" and count else 1)
    ]
    return run.table("false-positions", points, point, side=side, image=image, seed=seed)


def boxes_beside(
    object_box: npt.NDArray[np.int32], count: int, image: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return inclusive boxes of any size and place in a square image, none of which has a pixel of the object's box."""
    boxes = np.zeros((0, 4), np.int64)
    while len(boxes) < count:
        corners = np.sort(rng.integers(0, image, (count, 2, 2)), axis=1)  # two points: the smaller x and y first
        drawn = corners.reshape(count, 4)
        touching = ((drawn[:, :2] <= object_box[2:]) & (drawn[:, 2:] >= object_box[:2])).all(axis=1)
        boxes = np.concatenate([boxes, drawn[~touching]])
    return boxes[:count]


def mean_anywhere(false: int) -> tuple[float, float]:
    """Return the mean and the standard deviation of 1/(k + 1) with k anywhere from 0 to the number of false ones.

    >>> mean_anywhere(1)
    (0.75, 0.25)
    """
    values = 1 / np.arange(1, false + 2)
    return float(values.mean()), float(values.std())


def claims_of_false_positions(table: ResultTable) -> list[Claim]:
    """Judge that mAP sees the false detections that go before the right one, PDQ and moLRP all of them."""
    first, last = table.where(place="first"), table.where(place="last")
    share = 1 / (table["false"] + 1)
    return [
        equals("After the right detection, false ones anywhere are hidden: mAP stays 1", first, {"mAP": 1.0}),
        equals("Before it, n false ones count: mAP is 1/(n + 1)", last, {"mAP": 1 / (last["false"] + 1)}),
        equals("With k false ones before it, mAP is 1/(k + 1)", table, {"mAP": 1 / (table["before"] + 1)}),
        _mean_of_any_place(table.where(place="anywhere")),
        equals(
            "PDQ and 1 - moLRP of n false detections are 1/(n + 1), wherever they stand",
            table,
            dict.fromkeys(("PDQ", "1 - moLRP"), share),
        ),
    ]


def _mean_of_any_place(rows: ResultTable) -> Claim:
    claim = "With the right one anywhere, mAP is the mean of 1, 1/2 .. 1/(n + 1) on average"
    rows = rows.take(rows["false"] > 0)
    counts = np.unique(rows["false"]).tolist()
    if not counts or min(len(rows.where(false=count)) for count in counts) < 2:
        return not_measured(claim, "false detections in two repeats or more")
    off: dict[int, float] = {}
    variance = 0.0
    parts = []
    for count in counts:
        values = rows.where(false=count)["mAP"]
        mean, deviation = mean_anywhere(count)
        off[count] = float(values.mean() - mean)
        variance += deviation**2 / len(values)
        parts.append(f"{count}: {values.mean():.3f} for {mean:.3f}")
    # Draws with other numbers of false detections are independent, so the variances of their means add up.
    error = float(np.sqrt(variance)) / len(counts)
    mean_off = float(np.mean(list(off.values())))
    return Claim(
        claim,
        abs(mean_off) <= LIMIT * error + EXACT,
        f"{', '.join(parts)}; off by {mean_off:+.4f} ± {error:.4f} on average over n",
        f"within {LIMIT:g} standard errors, known from the n + 1 places",
        {f"off, {count} false": value for count, value in off.items()} | {"off": mean_off, "standard error": error},
    )


def draw_false_positions(table: ResultTable) -> Figure:
    """Draw the measures against the number of false detections, a panel for each place of the right one."""
    figure = new_figure(7.6, 3.2)
    panels = figure.subplots(1, 3, sharey=True)
    titles = {"first": "Right one first", "last": "Right one last", "anywhere": "Right one anywhere"}
    means = table.mean_over("repeat")
    for axes, place in zip(panels, PLACES, strict=True):
        part = means.where(place=place)
        if place == "anywhere":
            expected = [mean_anywhere(count)[0] for count in part["false"].tolist()]
            axes.plot(part["false"], expected, color="#D0D0D0", lw=7, label="mean of 1 .. 1/(n + 1)", zorder=1.5)
        for column, line in measure_lines():
            if column.key in part:
                axes.plot(part["false"], shown(part, column), **line, mew=1.2)
        for preset, name in presets_in(part).items():
            if preset != "reference":
                axes.plot(part["false"], part[name], color=BLUE, ls="--", lw=1.0, label=f"PDQ, {preset}")
        axes.set(xlabel="false detections, n", ylim=(-0.04, 1.07), title=titles[place])
    panels[0].set_ylabel("score")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=len(labels))
    return figure


FALSE_POSITIONS = Experiment(
    name="false-positions",
    section="C.1",
    varied="where sure false detections anywhere in the image stand: after the right one, before it, around it",
    claim="mAP sees only those before it; PDQ and moLRP fall as 1/(n + 1) in any case",
    function=false_positions,
    judge=claims_of_false_positions,
    draw=draw_false_positions,
    takes=("repeats", "seed"),
)
