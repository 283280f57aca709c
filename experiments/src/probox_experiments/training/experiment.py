"""Can one train with PDQ itself? One small detector, eight losses of its boxes, scenes of known ambiguity."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from probox.support.optional import require
from probox_experiments.experiment import Experiment
from probox_experiments.running import Run
from probox_experiments.table import ResultTable
from probox_experiments.training.arms import ARMS, find_arm
from probox_experiments.training.charts import draw_training
from probox_experiments.training.settings import Settings
from probox_experiments.training.verdicts import claims_of_training

__all__ = ["EXTRA", "TRAINING", "training"]

EXTRA = "torch"
NAMES = tuple(arm.name for arm in ARMS)


def training(
    *,
    arms: Sequence[str] = NAMES,
    repeats: int = 5,
    seed: int = 0,
    settings: Settings | None = None,
    run: Run | None = None,
) -> ResultTable:
    """Train the same detector with several losses of its boxes and their spread, several times.

    Parameters
    ----------
    arms : sequence of str
        Which of `probox_experiments.training.arms.ARMS`.
    repeats : int
        How many seeds. All arms of a seed begin with the same weights and see the same scenes in the same order.
    seed : int
        Seeds are 100 * seed, 100 * seed + 1, ...
    settings : Settings, optional
        How long, how fast and on how much.
    run : Run, optional
        Threads, progress, checkpoint. Every training uses one thread, so that no number depends on how many there are;
        as many are trained at once as there are threads.

    Returns
    -------
    ResultTable
        `seed`, `arm`; `PDQ`, `PDQ_paper`, `mAP`, `moLRP`, and what `measuring.measure_found` says of sigmas.
    """
    torch = require("torch", extra=EXTRA, purpose="experiment training needs")
    from probox_experiments.training.point import measure_arm

    run, chosen = run or Run(), settings or Settings()
    used = {name: dataclasses.asdict(find_arm(name)) for name in arms}
    # The arm that takes over another's boxes comes last: by then they have been trained.
    ordered = sorted(arms, key=lambda name: find_arm(name).spread == "constant")
    points = [{"seed": 100 * seed + number, "arm": name} for number in range(repeats) for name in ordered]

    def point(seed: int, arm: str) -> dict[str, float]:
        return measure_arm(find_arm(arm), seed, chosen)

    return run.table(
        "training",
        points,
        point,
        at_once=True,
        settings=dataclasses.asdict(chosen),
        arms=used,
        torch=torch.__version__,
    )


TRAINING = Experiment(
    name="training",
    section="none: ours",
    varied="the loss of boxes and their spread, of one small detector that is trained from scratch",
    claim="training with pPDQ gives at least the PDQ of every other loss at the same mAP, and the right sigmas",
    function=training,
    judge=claims_of_training,
    draw=draw_training,
    takes=("repeats", "seed"),
    extra=EXTRA,
    in_all=False,
    own_presets=True,
)
