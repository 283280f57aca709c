"""Time of the losses of `probox.torch`, forward and backward, on one core.

    python -m benchmarks.losses                 # 1,000 boxes of 100 x 100 pixels, and other sizes and std
    python -m benchmarks.losses --boxes 200

Times are the minimum of several rounds with alternating contenders, in processor seconds, which other load on the
machine does not affect; wall times are printed as well.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

from probox.torch import crps_loss, dmm_loss, energy_score_loss, nll_loss, ppdq_loss

GOAL = 0.3
"""Target in seconds for 1,000 boxes of 100 x 100 pixels with uncorrelated corners, forward and backward."""

CASES: dict[str, dict[str, Any]] = {
    "pPDQ, 100 x 100, std 3": {},
    "pPDQ, 100 x 100, std 3, float64": {"dtype": torch.float64},
    "pPDQ, 100 x 100, std 1": {"sigma": 1.0},
    "pPDQ, 100 x 100, std 10": {"sigma": 10.0},
    "pPDQ, 400 x 300, std 3": {"size": (400, 300)},
    "pPDQ, 100 x 100, std 3, errors of 5 std": {"error": 15.0},
    "pPDQ, 100 x 100, std 3, masks": {"masks": True},
    "pPDQ, 100 x 100, std 3, correlated corners": {"full": True},
    "NLL": {"loss": nll_loss},
    "energy score": {"loss": energy_score_loss},
    "CRPS": {"loss": crps_loss},
    "moment matching": {"loss": dmm_loss},
}
IMAGE = (640, 480)


def prepare(
    boxes: int,
    *,
    loss: Any = ppdq_loss,
    size: tuple[int, int] = (100, 100),
    sigma: float = 3.0,
    error: float | None = None,
    masks: bool = False,
    full: bool = False,
    dtype: Any = torch.float32,
) -> Any:
    """Return a function that computes a loss and its gradient once."""
    torch.manual_seed(0)
    room = torch.tensor([IMAGE[0] - size[0], IMAGE[1] - size[1]])
    first = (torch.rand(boxes, 2) * room).floor()
    truth = torch.cat([first, first + torch.tensor(size) - 1], 1).to(dtype)
    means = (truth + (sigma if error is None else error) * torch.randn(boxes, 4)).to(dtype).requires_grad_()
    if full:
        factor = torch.zeros(boxes, 2, 2, 2, dtype=dtype)
        factor[..., 0, 0] = factor[..., 1, 1] = sigma
        factor[..., 1, 0] = 0.5 * sigma
        spread = {"cholesky": factor.requires_grad_()}
    else:
        spread = {"log_std": torch.full((boxes, 4), sigma, dtype=dtype).log().requires_grad_()}
    there: dict[str, Any] = {"truth_boxes": truth}
    if masks:
        whole = torch.zeros(boxes, IMAGE[1], IMAGE[0], dtype=torch.bool)
        for row, (x0, y0, x1, y1) in enumerate(truth.long().tolist()):
            whole[row, y0 : y1 + 1, x0 : x1 + 1] = True
        there = {"truth_masks": whole}

    def run() -> None:
        loss(means, image_size=IMAGE, **spread, **there).backward()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boxes", type=int, default=1000, help="boxes in a batch [1000]")
    parser.add_argument("--rounds", type=int, default=5, help="rounds [5]")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    contenders = {name: prepare(chosen.boxes, **settings) for name, settings in CASES.items()}
    least = {name: (float("inf"), float("inf")) for name in contenders}
    for _ in range(chosen.rounds):
        for name, run in contenders.items():
            clock, used = time.perf_counter(), time.process_time()
            run()
            taken = time.process_time() - used, time.perf_counter() - clock
            least[name] = tuple(map(min, least[name], taken))  # type: ignore[assignment]
    print(f"{chosen.boxes:,} boxes, forward and backward, one thread, torch {torch.__version__}")
    for name, (used, clock) in least.items():
        print(f"{name:45} {used:8.3f} s processor {clock:8.3f} s wall")
    used = least["pPDQ, 100 x 100, std 3"][0]
    if chosen.boxes == 1000:
        print(f"goal: {GOAL} s; {'reached' if used < GOAL else 'missed'}")


if __name__ == "__main__":
    main()
