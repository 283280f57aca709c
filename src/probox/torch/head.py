"""A head that predicts two Gaussian corners per box from the features of a detector."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import torch

from probox.errors import InputError
from probox.torch.arguments import check_count, matrices_of

if TYPE_CHECKING:
    from torch import Tensor

MAX_CORRELATION = 0.99
"""Upper bound of correlations: at 1 a corner is a line, and rounding dominates its density."""

START_SHARE, START_PIXELS = 0.1, 5.0
"""Initial standard deviations: as a fraction of the box's sides, or in pixels."""


@dataclasses.dataclass(frozen=True)
class CornerSpread:
    """Uncertainty of box corners, in every form that losses take.

    Index it like a tensor, for example to select matched boxes: ``spread[matched]``.

    Parameters
    ----------
    log_std : (..., 4) tensor
        Log standard deviations of x1, y1, x2, y2, in pixels.
    rho : (..., 2) tensor or None
        Correlation of x and y of each corner; None for no correlation.
    """

    log_std: Tensor
    rho: Tensor | None = None

    def __getitem__(self, rows: Any) -> CornerSpread:
        return CornerSpread(self.log_std[rows], None if self.rho is None else self.rho[rows])

    def arguments(self) -> dict[str, Tensor]:
        """Return keyword arguments for a loss: ``nll_loss(boxes, **spread.arguments(), ...)``."""
        return {"log_std": self.log_std} if self.rho is None else {"cholesky": self.cholesky}

    @property
    def sigmas(self) -> Tensor:
        """Return the standard deviations in pixels, (..., 4)."""
        return self.log_std.exp()

    @property
    def cholesky(self) -> Tensor:
        """Return lower triangles L with covariances L L', (..., 2, 2, 2), in pixels."""
        x, y, rho = self._parts()
        across, down = y * rho, y * torch.sqrt(1.0 - rho**2)
        return matrices_of(x, torch.zeros_like(x), across, down)

    @property
    def covariance(self) -> Tensor:
        """Return the covariances of the top-left and the bottom-right corner, (..., 2, 2, 2), in square pixels."""
        x, y, rho = self._parts()
        across = rho * x * y
        return matrices_of(x**2, across, across, y**2)

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        x, y = self.sigmas[..., 0::2], self.sigmas[..., 1::2]
        return x, y, torch.zeros_like(x) if self.rho is None else self.rho


class GaussianCorners(torch.nn.Module):
    """A layer that maps features of a detector to the uncertainty of box corners.

        sigma = a + s R / (s + R),   s = softplus(u) * side,   R = b - a
        rho = 0.99 tanh(v)

    u (four per box) and v (two per box, with `full`) are the layer's outputs; a and b are `min_sigma` and `max_sigma`.
    side is the box's width for x and its height for y, without gradient, and at least 1 pixel; without
    `relative_to_size` it is 1 pixel. sigma increases smoothly from a to b and is close to s in between. Because nothing
    is clamped, every u has a gradient.

    Parameters
    ----------
    in_features : int
        Length of a box's features; the number of channels with `kernel_size`.
    full : bool
        Predict the correlation of x and y of each corner.
    min_sigma, max_sigma : float
        Bounds of the standard deviations, in pixels.
    start_sigma : float, optional
        Initial s: a fraction of the box's sides with `relative_to_size`, else pixels. Default: 0.1 or 5.
    relative_to_size : bool
        Scale s with the box's sides, because large boxes have larger errors.
    kernel_size : int, optional
        Make the layer a convolution with a kernel of this size, an odd number, for detectors that predict boxes at
        every position of a feature map.
    anchors : int
        Boxes per position of the feature map.

    Examples
    --------
    >>> import torch
    >>> from probox.torch import nll_loss
    >>> head = GaussianCorners(256)
    >>> features, boxes = torch.randn(8, 256), torch.tensor([[10.0, 10.0, 50.0, 40.0]]).repeat(8, 1)
    >>> spread = head(features, boxes)
    >>> loss = nll_loss(boxes, **spread.arguments(), truth_boxes=boxes + 1.0)
    >>> loss.backward()
    >>> spread.covariance.shape
    torch.Size([8, 2, 2, 2])

    On a feature map, here two images with three anchors, of which some are matched:

    >>> head = GaussianCorners(64, full=True, kernel_size=3, anchors=3)
    >>> spread = head(torch.randn(2, 64, 10, 12), torch.rand(2, 10 * 12 * 3, 4))
    >>> matched = torch.rand(2, 10 * 12 * 3) > 0.9
    >>> spread[matched].cholesky.shape[1:]
    torch.Size([2, 2, 2])
    """

    def __init__(
        self,
        in_features: int,
        *,
        full: bool = False,
        min_sigma: float = 0.05,
        max_sigma: float = 200.0,
        start_sigma: float | None = None,
        relative_to_size: bool = True,
        kernel_size: int | None = None,
        anchors: int = 1,
    ) -> None:
        super().__init__()
        if not 0.0 < min_sigma < max_sigma < math.inf:
            raise InputError(f"expected 0 < min_sigma < max_sigma, but got {min_sigma!r:.40} and {max_sigma!r:.40}")
        check_count(in_features, "in_features")
        check_count(anchors, "anchors")
        check_count(1 if kernel_size is None else kernel_size, "kernel_size")
        if kernel_size is not None and kernel_size % 2 == 0:
            raise InputError(f"expected an odd kernel_size, but got {kernel_size}")
        if kernel_size is None and anchors != 1:
            raise InputError("anchors are for feature maps", remedy="pass kernel_size, too")
        self.in_features, self.full, self.anchors = in_features, full, anchors
        self.min_sigma, self.max_sigma, self.relative_to_size = float(min_sigma), float(max_sigma), relative_to_size
        outputs = anchors * self.outputs
        if kernel_size is None:
            self.layer = torch.nn.Linear(in_features, outputs)
        else:
            self.layer = torch.nn.Conv2d(in_features, outputs, kernel_size, padding=kernel_size // 2)
        self._start(start_sigma)

    @property
    def outputs(self) -> int:
        """Return the layer's outputs per box: 4, or 6 with correlations."""
        return 6 if self.full else 4

    def _start(self, start_sigma: float | None) -> None:
        start = (START_SHARE if self.relative_to_size else START_PIXELS) if start_sigma is None else start_sigma
        room = self.max_sigma - self.min_sigma
        if not self.relative_to_size:
            if not self.min_sigma < start < self.max_sigma:
                raise InputError(
                    f"expected start_sigma between {self.min_sigma:g} and {self.max_sigma:g}, but got {start!r:.40}"
                )
            start = (start - self.min_sigma) * room / (room - (start - self.min_sigma))
        elif not 0.0 < start < math.inf:
            raise InputError(f"expected start_sigma to be a fraction above 0, but got {start!r:.40}")
        torch.nn.init.normal_(self.layer.weight, std=0.01)
        torch.nn.init.zeros_(self.layer.bias)
        with torch.no_grad():
            # The inverse of softplus: the layer starts with constant outputs.
            self.layer.bias.view(self.anchors, -1)[:, :4] = start + math.log(-math.expm1(-start))

    def forward(self, features: Tensor, boxes: Tensor) -> CornerSpread:
        """Return the uncertainty of the corners of boxes.

        Parameters
        ----------
        features : (..., in_features) tensor, or (B, in_features, H, W) with `kernel_size`
            Features of each box, or of each position.
        boxes : (..., 4) tensor, or (B, H * W * anchors, 4) with `kernel_size`
            x1, y1, x2, y2 in pixels. Boxes of a feature map are ordered by row, column and anchor.

        Returns
        -------
        CornerSpread
            Standard deviations and correlations of the boxes.

        Examples
        --------
        >>> import torch
        >>> spread = GaussianCorners(16)(torch.randn(8, 16), torch.tensor([[10.0, 10.0, 50.0, 40.0]]).repeat(8, 1))
        >>> spread.log_std.shape
        torch.Size([8, 4])
        """
        axis = -1 if isinstance(self.layer, torch.nn.Linear) else 1
        wanted = f"(..., {self.in_features})" if axis == -1 else f"(B, {self.in_features}, H, W)"
        if features.dim() < 1 or (axis == 1 and features.dim() != 4) or features.shape[axis] != self.in_features:
            raise InputError(f"expected features of shape {wanted}, but got {tuple(features.shape)}")
        raw = self.layer(features)
        if axis == 1:
            raw = raw.permute(0, 2, 3, 1).unflatten(-1, (self.anchors, self.outputs)).flatten(1, 3)
        return self.spread(raw, boxes)

    def spread(self, raw: Tensor, boxes: Tensor) -> CornerSpread:
        """Convert raw outputs, of this layer or another one, (..., 4), or (..., 6) with correlations.

        Parameters
        ----------
        raw : (..., 4) or (..., 6) tensor
            Raw outputs; the last two are correlations.
        boxes : (..., 4) tensor
            x1, y1, x2, y2 in pixels.

        Returns
        -------
        CornerSpread
            Standard deviations and correlations of the boxes.

        Examples
        --------
        >>> import torch
        >>> GaussianCorners(16).spread(torch.zeros(1, 4), torch.tensor([[10.0, 10.0, 50.0, 40.0]])).cholesky.shape
        torch.Size([1, 2, 2, 2])
        """
        if raw.dim() < 1 or raw.shape[-1] != self.outputs or boxes.shape != (*raw.shape[:-1], 4):
            shape = tuple(raw.shape[:-1])
            raise InputError(
                f"expected boxes of shape {(*shape, 4)} and outputs of {(*shape, self.outputs)}, "
                f"but got {tuple(boxes.shape)} and {tuple(raw.shape)}"
            )
        kind = torch.promote_types(raw.dtype, torch.float32)
        raw = raw.to(kind)
        wide = torch.nn.functional.softplus(raw[..., :4])
        if self.relative_to_size:
            sides = (boxes[..., 2:] - boxes[..., :2]).detach().to(kind).clamp(min=1.0)
            wide = wide * torch.cat([sides, sides], -1)
        room = self.max_sigma - self.min_sigma
        sigmas = self.min_sigma + wide * (room / (wide + room))
        rho = MAX_CORRELATION * torch.tanh(raw[..., 4:]) if self.full else None
        return CornerSpread(torch.log(sigmas), rho)

    def extra_repr(self) -> str:
        """Return the settings that `print` shows beside the layer."""
        return f"full={self.full}, sigma from {self.min_sigma:g} to {self.max_sigma:g}"
