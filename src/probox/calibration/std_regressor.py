"""The std regressor: standard deviations for the boxes of any frozen detector, learned from its errors."""

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
    """Return finite numbers of a shape; those that may be missing may be NaN."""
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
            f"{which} is {numbers[place]:g}, one of {int(wrong.sum()):,} that are no numbers",
            remedy="leave such rows out, or put numbers in their place",
        )
    return numbers


def check_features(values: Any) -> Floats:
    """Return features of edges, (N, 4, F)."""
    numbers = _to_numbers(values, "features")
    if numbers.ndim not in (2, 3) or numbers.shape[-1] == 0 or (numbers.ndim == 3 and numbers.shape[1] != 4):
        raise InputError(
            f"expected features of shape (N, F) or (N, 4, F), but got {numbers.shape}",
            remedy="give a row for each box and a column for each feature",
        )
    _check_finite(numbers, "features")
    return np.repeat(numbers[:, None, :], 4, axis=1) if numbers.ndim == 2 else numbers


def check_sides(values: Any, rows: int) -> Floats:
    """Return what residuals are relative to: 1 if nothing is said."""
    if values is None:
        return np.ones((rows, 4))
    sides = check_array(values, "sides", (rows, 4))
    if not (sides > 0).all():
        raise InputError("expected sides above 0", remedy="leave out boxes without extent")
    return sides


class StdRegressor:
    """Learns the sigmas of the four edges of a frozen detector's boxes from what the detector says of them.

    With tables, `fit(found, truth)` matches boxes and learns from score, size, class and, if there
    are covariances, the detector's own sigmas. With arrays, `fit(features, residuals)` learns from any numbers. Either
    way the logarithm of sigma over side is linear in the features, `docs/calibration.md` says how.

    >>> from probox.calibration import StdRegressor
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> plain = demo.detectors["deterministic"]
    >>> regressor = StdRegressor().fit(plain, demo.truth)
    >>> regressor.predict(plain).shape
    (167, 4)
    >>> regressor.apply(plain)
    Detections(167 detections in 12 images, 7 classes, 167 probabilistic)

    Parameters
    ----------
    target : {"nll", "coverage", "pdq"}
        What the height of all sigmas is fitted for; with arrays not for PDQ, which needs images.
    level : float
        For coverage: the central interval of an edge that is to hold its share.
    own_sigmas : bool, optional
        Whether to learn from the detector's own sigmas. Default: if there are any. Tables only.
    ridge : float, optional
        How much slopes are drawn towards 0. Default: chosen by cross-validation by image.
    folds, seed : int
        Of this cross-validation.
    convention : str or Convention, optional
        How PDQ is measured, for that target; as for `probox.evaluate`.

    Attributes
    ----------
    model_ : SpreadLaw
        What was learned: level, edges, slopes, classes.
    ridge_ : float
        The ridge that was used.
    n_features_in_ : int
        How many features an edge has.
    mapping_ : Learned or None
        What `probox.calibration.Calibration` takes as its corners; None if the regressor was fitted on arrays.
    notes_ : tuple of Note
        What is to be said about the fit.
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
        # As they are: checked when they are used, so that copies of a regressor can be made from its parameters.
        self.target = target
        self.level = level
        self.own_sigmas = own_sigmas
        self.ridge = ridge
        self.folds = folds
        self.seed = seed
        self.convention = convention

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is for those who expect it, and changes nothing."""
        return {name: getattr(self, name) for name in self._parameters}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and return the regressor."""
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
        """Learn from detections and their truth, or from arrays; return the regressor.

        Parameters
        ----------
        features : Detections, or (N, F) or (N, 4, F) array
            Detections of images whose truth is known; or numbers of boxes, or of each of their edges.
        residuals : GroundTruth, or (N, 4) array
            The truth; or truth minus box of x1, y1, x2, y2, NaN for an edge that does not count.
        sides : (N, 4) array, optional
            Arrays only: what residuals are relative to, such as width, height, width, height. Default: 1.
        images : (N,) array of int, optional
            Arrays only: whose rows stay together when the ridge is chosen. Default: each row for itself.
        """
        self._check_parameters()
        self.notes_ = ()
        if isinstance(features, Detections | GroundTruth) or isinstance(residuals, Detections | GroundTruth):
            if isinstance(features, GroundTruth):
                raise InputError("the order is fit(found, truth)")
            check_tables(residuals, features, "fit")
            if sides is not None or images is not None:
                raise InputError("tables know their sides and images", remedy="leave sides and images out")
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
                    "no matched box has covariances to learn from",
                    file=found.source or None,
                    remedy="leave own_sigmas out, or give detections with covariances",
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
            raise InputError("own_sigmas is for tables", remedy="give sigmas among the features")
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
            What the regressor was fitted on, of any images.
        sides : (N, 4) array, optional
            Arrays only: as in `fit`.
        """
        if isinstance(features, Detections):
            mapping = self._mapping()
            if sides is not None:
                raise InputError("tables know their sides", remedy="leave sides out")
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
        """Return the detections with learned covariances; plain ones stay so if the regressor learned from own std.

        Parameters
        ----------
        found : Detections
            Of any images.
        truth : GroundTruth or Dataset, optional
            Not needed: a regressor keeps its std at the image border.
        """
        expect(found, Detections, "found", "read them first with probox.read_detections(path, truth)")
        self._check_sigmas(found, some=True)
        return Calibration(corners=self._mapping(), target=self.target).apply(found, truth)

    def _check_sigmas(self, found: Detections, *, some: bool) -> None:
        """Raise if the regressor needs sigmas and not all detections have them, or, with `some`, none."""
        if not self._mapping().needs_covariances or not len(found):
            return
        has = np.zeros(len(found), bool)
        if found.covariances is not None:
            has = found.covariances.any(axis=(1, 2, 3)) & ~found.has_heatmap
        if (some and has.any()) or has.all():
            return
        raise InputError(
            f"the regressor learned from own std, but {int((~has).sum()):,} of {len(found):,} detections have none",
            file=found.source or None,
            remedy="give detections with covariances, or fit with own_sigmas=False",
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise InputError("the regressor has not been fitted", remedy="call fit first")

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
