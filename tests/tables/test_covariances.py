"""Covariances against NumPy's own."""

from __future__ import annotations

import numpy as np

from probox.tables.covariances import nearest_covariances, smallest_eigenvalues


def test_eigenvalues_and_repairs_are_numpys():
    random = np.random.default_rng(2)
    matrices = random.normal(size=(200, 2, 2))
    symmetric = (matrices + matrices.swapaxes(1, 2)) / 2
    np.testing.assert_allclose(smallest_eigenvalues(symmetric), np.linalg.eigvalsh(symmetric)[:, 0], atol=1e-12)
    nearest = nearest_covariances(matrices)
    values, vectors = np.linalg.eigh(symmetric)
    expected = np.einsum("nik,nk,njk->nij", vectors, values.clip(0), vectors)
    np.testing.assert_allclose(nearest, expected, atol=1e-12)
    good = values[:, 0] >= 0
    assert 10 < good.sum() < 190
    np.testing.assert_array_equal(nearest[good], symmetric[good])  # what is valid is not touched
    singular = np.ones((1, 2, 2))
    assert np.linalg.eigvalsh(singular)[0, 0] >= 0
    np.testing.assert_array_equal(nearest_covariances(singular), singular)
