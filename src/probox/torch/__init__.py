"""PyTorch losses for probabilistic detectors: pPDQ, NLL, energy score, CRPS, moment matching and PMB-NLL.

>>> import torch
>>> from probox.torch import ppdq_loss
>>> boxes, log_std = torch.tensor([[11.0, 19.0, 41.0, 40.0]]), torch.zeros(1, 4, requires_grad=True)
>>> loss = ppdq_loss(boxes, log_std=log_std, truth_boxes=torch.tensor([[10.0, 20.0, 40.0, 40.0]]))
>>> loss.backward()
"""

from probox.support.optional import require

require("torch", extra="torch", purpose="training needs")

from probox.torch.head import GaussianCorners  # noqa: E402
from probox.torch.losses import crps_loss, dmm_loss, energy_score_loss, nll_loss, pmb_nll_loss  # noqa: E402
from probox.torch.ppdq import background, foreground, ppdq_loss, spatial_quality  # noqa: E402

__all__ = [
    "GaussianCorners",
    "background",
    "crps_loss",
    "dmm_loss",
    "energy_score_loss",
    "foreground",
    "nll_loss",
    "pmb_nll_loss",
    "ppdq_loss",
    "spatial_quality",
]
