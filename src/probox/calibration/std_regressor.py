"""The std regressor: standard deviations for the boxes of any frozen detector, fitted to its errors."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
import numpy.typing as npt

from probox.calibration.calibration import TARGETS, Calibration
from probox.calibration.corner_fit import (
    FittingPairs,
    check_pairs,
    fit_height,
    fit_learned,
    height_for,
    with_free_edges,
)
from probox.calibration.corner_maps import CalibrationInputs, Learned
from probox.calibration.cross_validation import PdqCurve
from probox.calibration.std_regression import StdModel, fit_std_model
from probox.convention import Convention, resolve_convention
from probox.errors import InputError
from probox.notes import Note
from probox.support.types import Floats
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.table import check_tables, expect

if TYPE_CHECKING:
    from typing_extensions import Self


def check_array(values: Any, name: str, shape: tuple[int, ...], *, missing: bool = False) -> Floats:
    """Return finite numbers of a shape; with `missing`, NaN is allowed."""
    numbers = _to_numbers(values, name)
    if numbers.shape != shape:
        raise InputError(f"expected {name} of shape {shape}, but got {numbers.shape}")
    return _check_finite(numbers, name, missing=missing)


def _to_numbers(values: Any, name: str) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"expected {name} to be an array of numbers, but got {type(values).__name__}") from None


def _check_finite(numbers: Floats, name: str, *, missing: bool = False) -> Floats:
    wrong = np.isinf(numbers) if missing else ~np.isfinite(numbers)
    if wrong.any():
        place = tuple(int(at) for at in np.argwhere(wrong)[0])
        which = f"{name}[{', '.join(map(str, place))}]"
        raise InputError(
            f"{which} is {numbers[place]:g}, expected finite numbers ({int(wrong.sum()):,} are not)",
            remedy="remove or replace such rows",
        )
    return numbers


def check_features(values: Any) -> Floats:
    """Return features of edges, (N, 4, F)."""
    numbers = _to_numbers(values, "features")
    if numbers.ndim not in (2, 3) or numbers.shape[-1] == 0 or (numbers.ndim == 3 and numbers.shape[1] != 4):
        raise InputError(
            f"expected features of shape (N, F) or (N, 4, F), but got {numbers.shape}",
            remedy="give a row per box and a column per feature",
        )
    _check_finite(numbers, "features")
    return np.repeat(numbers[:, None, :], 4, axis=1) if numbers.ndim == 2 else numbers


def check_sides(values: Any, rows: int) -> Floats:
    """Return the sides that residuals are divided by; 1 by default."""
    if values is None:
        return np.ones((rows, 4))
    sides = check_array(values, "sides", (rows, 4))
    if not (sides > 0).all():
        raise InputError("expected sides above 0", remedy="remove boxes of width or height 0")
    return sides


class StdRegressor:
    """Predicts the std of the four edges of a frozen detector's boxes from other outputs of the detector.

    With tables, `fit(found, truth)` matches boxes and uses score, size, class and, if there are covariances, the
    detector's own std. With arrays, `fit(features, residuals)` uses any features. In both cases ln(std / side) is
    linear in the features, see `docs/calibration.md`.

    Parameters
    ----------
    target : {"nll", "coverage", "pdq"}
        Objective of the common factor of all std. PDQ needs images, so it is not available for arrays.
    level : float
        For coverage: probability of the central interval of an edge.
    own_sigmas : bool, optional
        Use the detector's own std as features. Default: if there are any. Tables only.
    ridge : float, optional
        Penalty of slopes. Default: chosen by cross-validation over images.
    folds, seed : int
        Number of folds and random seed of the cross-validation.
    convention : str or Convention, optional
        Convention of PDQ for target ``"pdq"``, as for `probox.evaluate`.

    Attributes
    ----------
    model_ : StdModel
        The fitted model: level, edges, slopes, classes.
    ridge_ : float
        The ridge of the fit.
    n_features_in_ : int
        Number of features per edge.
    mapping_ : Learned or None
        The `corners` of a `probox.calibration.Calibration`; None if fitted on arrays.
    notes_ : tuple of Note
        Notes on the fit.

    Examples
    --------
    >>> from probox.calibration import StdRegressor
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> found = demo.detectors["deterministic"]
    >>> regressor = StdRegressor().fit(found, demo.truth)
    >>> regressor.predict(found).shape
    (167, 4)
    >>> regressor.apply(found)
    Detections(167 detections in 12 images, 7 classes, 167 probabilistic)
    """

    model_: StdModel
    ridge_: float
    n_features_in_: int
    mapping_: Learned | None
    notes_: tuple[Note, ...]

    _parameters: ClassVar[tuple[str, ...]] = (
        "target", "level", "own_sigmas", "ridge", "folds", "seed", "convention",
    )  # fmt: skip

    def __init__(
        self,
        *,
        target: str = "nll",
        level: float = 0.9,
        own_sigmas: bool | None = None,
        ridge: float | None = None,
        folds: int = 5,
        seed: int = 0,
        convention: str | Convention | None = None,
    ) -> None:
        # Stored unchanged and checked in fit, as scikit-learn's clone requires.
        self.target = target
        self.level = level
        self.own_sigmas = own_sigmas
        self.ridge = ridge
        self.folds = folds
        self.seed = seed
        self.convention = convention

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            No effect; for compatibility with scikit-learn.

        Returns
        -------
        dict
            Names and values of the parameters.

        Examples
        --------
        >>> StdRegressor(folds=3).get_params()["folds"]
        3
        """
        return {name: getattr(self, name) for name in self._parameters}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params
            Names and values of parameters.

        Returns
        -------
        StdRegressor
            This object.

        Examples
        --------
        >>> StdRegressor().set_params(folds=3).folds
        3
        """
        for name in params:
            if name not in self._parameters:
                known = ", ".join(self._parameters)
                raise InputError(f"a std regressor has no parameter {name!r:.40}", remedy=f"use {known}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @overload
    def fit(self, features: Detections, residuals: GroundTruth) -> Self: ...
    @overload
    def fit(
        self,
        features: npt.ArrayLike,
        residuals: npt.ArrayLike,
        *,
        sides: npt.ArrayLike | None = None,
        images: npt.ArrayLike | None = None,
    ) -> Self: ...
    def fit(self, features: Any, residuals: Any, *, sides: Any = None, images: Any = None) -> Self:
        """Fit the regressor to detections and their ground truth, or to arrays.

        Parameters
        ----------
        features : Detections, or (N, F) or (N, 4, F) array
            Detections of images with ground truth; or features of boxes or of each of their edges.
        residuals : GroundTruth, or (N, 4) array
            Ground truth; or ground truth minus box of x1, y1, x2, y2, NaN for edges to ignore.
        sides : (N, 4) array, optional
            Arrays only: divisors of residuals, such as width, height, width, height. Default: 1.
        images : (N,) array of int, optional
            Arrays only: image of each row, kept together by the cross-validation. Default: each row is its own image.

        Returns
        -------
        StdRegressor
            This object.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> size = rng.uniform(0.0, 2.0, (200, 1))
        >>> regressor = StdRegressor().fit(size, rng.normal(size=(200, 4)) * np.exp(size))
        >>> bool((regressor.predict([[1.5]]) > regressor.predict([[0.5]])).all())
        True
        """
        self._check_parameters()
        self.notes_ = ()
        if isinstance(features, Detections | GroundTruth) or isinstance(residuals, Detections | GroundTruth):
            if isinstance(features, GroundTruth):
                raise InputError("the order is fit(found, truth)")
            check_tables(residuals, features, "fit")
            if sides is not None or images is not None:
                raise InputError("tables have their own sides and images", remedy="omit sides and images")
            self._fit_tables(features, residuals)
        else:
            self._fit_arrays(features, residuals, sides, images)
        return self

    def _choices(self) -> dict[str, Any]:
        return {"ridge": self.ridge, "folds": self.folds, "seed": self.seed}

    def _fit_tables(self, found: Detections, truth: GroundTruth) -> None:
        pairs = FittingPairs.of(truth, found)
        own = bool(pairs.covariances.any()) if self.own_sigmas is None else self.own_sigmas
        if own and len(pairs):
            if not pairs.usable.any():
                raise InputError(
                    "no matched box has a covariance to fit to",
                    file=found.source or None,
                    remedy="omit own_sigmas, or give detections with covariances",
                )
            pairs = pairs.take(pairs.usable)
        pairs = with_free_edges(pairs)
        shape, ridge = fit_learned(pairs, own_sigmas=own, **self._choices())
        quality = None
        if self.target == "pdq":
            convention = resolve_convention("reference" if self.convention is None else self.convention)
            curve = PdqCurve(truth, found, convention)
            quality = partial(curve.pdq, images=np.ones(len(truth.dataset), bool))
        mapping = fit_height(shape, pairs, self.target, level=self.level, quality=quality)
        assert isinstance(mapping, Learned)
        self.mapping_, self.model_, self.ridge_ = mapping, mapping.model, ridge
        self.n_features_in_ = len(mapping.model.slopes)

    def _fit_arrays(self, features: Any, residuals: Any, sides: Any, images: Any) -> None:
        if self.target == "pdq":
            raise InputError("PDQ needs images", remedy='use target="nll", or fit on tables')
        if self.own_sigmas is not None:
            raise InputError("own_sigmas is for tables only", remedy="give the std among the features")
        x = check_features(features)
        away = check_array(residuals, "residuals", (len(x), 4), missing=True)
        sides = check_sides(sides, len(x))
        if images is not None:
            images = np.asarray(images)
            if images.shape != (len(x),) or images.dtype.kind not in "iu":
                raise InputError(
                    f"expected images to be {len(x):,} whole numbers, but got {images.dtype} of shape {images.shape}",
                    remedy="give each row the number of its image",
                )
        some = np.asarray(np.isfinite(away).any(axis=1))
        check_pairs(int(some.sum()))
        names = tuple(f"feature {number + 1}" for number in range(x.shape[2]))
        own = None if images is None else images[some]
        model, self.ridge_ = fit_std_model(x[some], away[some] / sides[some], names, images=own, **self._choices())
        z = away / sides / model.relative_sigmas(x)
        self.model_ = model.scale_by(height_for(self.target, self.level)(z[np.isfinite(z)]))
        self.mapping_, self.n_features_in_ = None, x.shape[2]

    def predict(self, features: Detections | npt.ArrayLike, *, sides: npt.ArrayLike | None = None) -> Floats:
        """Return the standard deviations of x1, y1, x2, y2, (N, 4): of detections in pixels, of arrays in their units.

        Parameters
        ----------
        features : Detections or array
            Detections of any images, or features, as in `fit`.
        sides : (N, 4) array, optional
            Arrays only: as in `fit`.

        Returns
        -------
        (N, 4) float64
            Predicted standard deviations.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> demo = make_demo()
        >>> found = demo.detectors["deterministic"]
        >>> bool((StdRegressor().fit(found, demo.truth).predict(found) > 0).all())
        True
        """
        if isinstance(features, Detections):
            mapping = self._mapping()
            if sides is not None:
                raise InputError("tables have their own sides", remedy="omit sides")
            self._check_sigmas(features, some=False)
            rows = np.arange(len(features))
            covariances = np.zeros((len(rows), 2, 2, 2)) if features.covariances is None else features.covariances
            return mapping.sigmas(CalibrationInputs.of(features, rows, covariances))
        self._check_fitted()
        if self.mapping_ is not None:
            raise InputError("the regressor was fitted on tables", remedy="give Detections, or fit it on arrays")
        x = check_features(features)
        if x.shape[2] != self.n_features_in_:
            raise InputError(
                f"expected {self.n_features_in_} features, as in fit, but got {x.shape[2]}",
                remedy="give the same columns in the same order",
            )
        return self.model_.relative_sigmas(x) * check_sides(sides, len(x))

    def apply(self, found: Detections, truth: GroundTruth | Dataset | None = None) -> Detections:
        """Return the detections with predicted covariances.

        If the regressor uses the detector's own std, boxes without covariance are not changed.

        Parameters
        ----------
        found : Detections
            Detections of any images.
        truth : GroundTruth or Dataset, optional
            Ignored; accepted for compatibility with `Calibration.apply`.

        Returns
        -------
        Detections
            Detections with covariances.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> demo = make_demo()
        >>> found = demo.detectors["deterministic"]
        >>> bool(StdRegressor().fit(found, demo.truth).apply(found).covariances.any())
        True
        """
        expect(found, Detections, "found", "read them first with probox.read_detections(path, truth)")
        self._check_sigmas(found, some=True)
        return Calibration(corners=self._mapping(), target=self.target).apply(found, truth)

    def _check_sigmas(self, found: Detections, *, some: bool) -> None:
        """Raise if the regressor uses the detector's own std and detections lack it: any, or with `some` all."""
        if not self._mapping().needs_covariances or not len(found):
            return
        has = np.zeros(len(found), bool)
        if found.covariances is not None:
            has = found.covariances.any(axis=(1, 2, 3)) & ~found.has_heatmap
        if (some and has.any()) or has.all():
            return
        raise InputError(
            f"the regressor uses own std, but {int((~has).sum()):,} of {len(found):,} detections have none",
            file=found.source or None,
            remedy="give detections with covariances, or fit with own_sigmas=False",
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise InputError("the regressor is not fitted", remedy="call fit first")

    def _mapping(self) -> Learned:
        self._check_fitted()
        if self.mapping_ is None:
            raise InputError(
                "the regressor was fitted on arrays, not detections", remedy="give arrays, or fit on tables"
            )
        return self.mapping_

    def _check_parameters(self) -> None:
        def fail(name: str, expected: str) -> None:
            raise InputError(f"expected {name} to be {expected}, but got {getattr(self, name)!r:.40}")

        if not isinstance(self.target, str) or self.target not in TARGETS:
            fail("target", f"one of {', '.join(TARGETS)}")
        if not _is_number(self.level) or not 0 < self.level < 1:
            fail("level", "a number between 0 and 1")
        if self.own_sigmas is not None and not isinstance(self.own_sigmas, bool):
            fail("own_sigmas", "True, False or None")
        if self.ridge is not None and not (_is_number(self.ridge) and 0 < self.ridge < math.inf):
            fail("ridge", "a number above 0, or None")
        for name, least in (("folds", 2), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                fail(name, f"a whole number from {least}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
