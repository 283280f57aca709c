"""Covariances of corners, many at a time: 2 x 2 matrices along the last two axes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.errors import InputError

__all__ = ["constant_covariances", "corner_covariances", "nearest_covariances", "smallest_eigenvalues"]


def smallest_eigenvalues(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the smaller eigenvalue of symmetric 2 x 2 matrices: (a + d)/2 - sqrt(((a - d)/2)^2 + b^2)."""
    a, b, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    result: npt.NDArray[np.float64] = (a + d) / 2 - np.hypot((a - d) / 2, b)
    return result


def nearest_covariances(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the nearest symmetric positive semi-definite matrices: negative eigenvalues become 0."""
    symmetric = (matrices + np.swapaxes(matrices, -1, -2)) / 2
    values, vectors = np.linalg.eigh(symmetric)
    nearest: npt.NDArray[np.float64] = (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.where((values[..., :1] >= 0)[..., None], symmetric, nearest)  # eigh sorts ascending


def constant_covariances(
    boxes: npt.NDArray[np.float64], share: float | npt.NDArray[np.float64], *, least_side: float = 1.0
) -> npt.NDArray[np.float64]:
    """Return covariances of one standard deviation per axis, a share of the box's width and height.

    It takes nothing from the detector but the box: the control of every uncertainty. A side below `least_side` counts
    as that: by default a pixel, so that no corner is certain.

    >>> constant_covariances(np.array([[0.0, 0.0, 20.0, 10.0]]), 0.1)[0].tolist()
    [[[4.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 1.0]]]
    """
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], least_side)
    variances = (np.reshape(share, (-1, 1)) * sides) ** 2
    return np.asarray(np.broadcast_to(np.eye(2) * variances[:, None, None, :], (len(boxes), 2, 2, 2)).copy())


def corner_covariances(cov: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the corners' 2 x 2 blocks (N, 2, 2, 2) of full covariances (N, 4, 4) of ``x1, y1, x2, y2``.

    PDQ takes a box's two corners as independent: what ties one corner to the other is left out.

    >>> corner_covariances(np.diag([1.0, 4.0, 9.0, 16.0]))[1].tolist()
    [[9.0, 0.0], [0.0, 16.0]]
    """
    full = np.asarray(cov, np.float64)
    if full.shape[-2:] != (4, 4):
        raise InputError(f"expected cov of shape N x 4 x 4, but got {' x '.join(map(str, full.shape)) or 'a scalar'}")
    return np.stack([full[..., :2, :2], full[..., 2:, 2:]], axis=-3)
