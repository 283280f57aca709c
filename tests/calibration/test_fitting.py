"""`probox.calibration.fit` as a whole: the same again, whatever the order, and what it says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.strategies import random_world
from tests.worlds import boxes_truth, simulated

import probox
from probox import Detections, GroundTruth, InputError
from probox.calibration import Calibration, cross_validation, fit
from probox.calibration.corner_fit import FittingPairs
from probox.calibration.corner_maps import ClassScale, MonotoneCurve, Scale
from probox.calibration.fitting import notes_on_nll, notes_on_threshold
from probox.calibration.label_maps import ScoreCurves, Temperature
from probox.demo import Demo
from probox.fusion import keep_inside
from probox.notes import Note


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return boxes_truth(12)


@pytest.fixture(scope="module")
def found(truth: GroundTruth) -> Detections:
    return simulated(truth, false_per_image=2)


def test_the_same_again(truth: GroundTruth, found: Detections) -> None:
    one, two = (fit(truth, found, label_method="temperature", seed=3) for _ in range(2))
    assert one == two
    order = np.random.default_rng(0).permutation(len(found))
    turned = fit(truth, found.select(order), label_method="temperature", seed=3)
    assert turned.calibration == one.calibration
    assert turned.gain.changes["PDQ"].after == pytest.approx(one.gain.changes["PDQ"].after)
    other = fit(truth, found, label_method="temperature", seed=4)
    assert other.calibration == one.calibration, "the seed deals the folds, the file is of all images"
    assert other.gain != one.gain


def test_progress_counts_all_fits(truth: GroundTruth, found: Detections) -> None:
    steps: list[tuple[int, int]] = []
    fit(truth, found, folds=3, progress=lambda *step: steps.append(step))
    assert steps == [(n, 7) for n in range(1, 8)]


def test_pdq_grows_by_a_scale_fitted_for_it(truth: GroundTruth, found: Detections) -> None:
    gain = fit(truth, found).gain
    assert gain.changes["PDQ"].low > 0
    assert (gain.folds, gain.images, gain.pairs) == (5, 12, 72)


def test_held_out_detections_give_the_numbers_that_are_told(truth: GroundTruth, found: Detections) -> None:
    for method in ("constant", "isotonic"):
        fitted = fit(truth, found, method=method, target="nll", label_method="temperature")
        numbers = probox.evaluate(truth, fitted.held_out, measures=("pdq", "nll", "energy")).summary()
        told = fitted.gain.changes
        assert [numbers[key] for key in ("PDQ", "NLL", "energy")] == pytest.approx(
            [told[key].after for key in ("PDQ", "NLL", "energy")]
        )
        everywhere = fitted.calibration.apply(found, truth)
        assert not np.array_equal(fitted.held_out.covariances, everywhere.covariances), "a fit has seen its own images"


def test_each_method_on_each_target(demo: Demo) -> None:
    truth = demo.truth.select_images(demo.truth.image_ids[:4])
    for method in ("scale", "edge-scale", "class-scale", "isotonic", "learned", "constant", "conformal"):
        for target in ("pdq", "nll", "coverage") if method != "conformal" else (None,):
            fitted = fit(truth, demo.detectors["probabilistic"], method=method, target=target, folds=2, resamples=20)
            assert fitted.calibration.corners.method == method
            assert fitted.calibration.target == (target or "coverage")
            assert repr(fitted.calibration) == f"Calibration({method} for {target or 'coverage'}, labels none)"


def test_labels_are_calibrated_beside_corners(demo: Demo) -> None:
    fitted = fit(demo.truth, demo.detectors["probabilistic"], target="nll", label_method="isotonic")
    assert fitted.gain.changes["ignorance"].low > 0
    assert "ignorance" not in fit(demo.truth, demo.detectors["probabilistic"], target="nll").gain.changes
    words = str(fitted.calibration)
    assert words == "std times 1.11; scores are mapped to precision (1 class has its own curve)"
    warmer = fit(demo.truth, demo.detectors["probabilistic"], target="nll", label_method="temperature").calibration
    assert isinstance(warmer.labels, Temperature)


def test_other_images_and_classes_are_fine(truth: GroundTruth, found: Detections) -> None:
    calibration = fit(truth, found, method="class-scale", target="nll").calibration
    elsewhere = Detections(
        classes=["unicorn"], image_ids=[-5], boxes=[[0, 0, 9, 9]], label_probs=[[0.5]],
        covariances=np.tile(np.eye(2), (1, 2, 1, 1)),
    )  # fmt: skip
    calibrated = calibration.apply(elsewhere)
    assert calibrated.covariances[0, 0, 0, 0] == pytest.approx(calibration.corners.others**2)
    assert calibrated.notes == (Note("classes-not-fitted", 1, what="corners", names="unicorn"),)
    assert (calibrated.boxes == elsewhere.boxes).all()


def test_detections_of_unknown_images_and_classes_change_nothing(truth: GroundTruth, found: Detections) -> None:
    more = found.replace(
        **{name: np.concatenate([values, values[:5]]) for name, values in found.columns().items()}
        | {"image_ids": np.concatenate([found.image_ids, np.full(5, 999_999)])}
    )
    assert fit(truth, more).calibration == fit(truth, found).calibration


class TestMessages:
    def test_plain_boxes(self, truth: GroundTruth, found: Detections) -> None:
        plain = found.replace(covariances=None, source="plain.json")
        with pytest.raises(
            InputError,
            match=r'^plain\.json: expected covariances, but got none; use method="constant" or method="learned"$',
        ):
            fit(truth, plain)
        zero = plain.replace(covariances=np.zeros((len(plain), 2, 2, 2)))
        with pytest.raises(InputError, match="expected covariances"):
            fit(truth, zero, method="conformal")

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"method": "platt"}, "expected method to be one of scale, edge-scale.* but got 'platt'"),
            ({"label_method": 3}, "expected label_method to be one of none, temperature, isotonic, but got 3"),
            ({"target": "map"}, "expected target to be one of pdq, nll, coverage"),
            ({"method": "conformal", "target": "pdq"}, "for method conformal, but got pdq; omit target"),
            ({"folds": 1}, "expected folds to be a whole number from 2"),
            ({"folds": 2.0}, "expected folds to be a whole number"),
            ({"seed": -1}, "expected seed to be a whole number from 0"),
            ({"alpha": 1.0}, "expected alpha to be a number between 0 and 1, but got 1.0"),
            ({"level": float("nan")}, "expected level to be a number between 0 and 1"),
            ({"resamples": 0}, "expected resamples"),
        ],
    )
    def test_choices(self, truth: GroundTruth, found: Detections, wrong: dict, message: str) -> None:
        with pytest.raises(InputError, match=message):
            fit(truth, found, **wrong)

    def test_swapped_tables(self, truth: GroundTruth, found: Detections) -> None:
        with pytest.raises(InputError, match=r"the order is fit\(truth, detections\)"):
            fit(found, truth)

    def test_no_detections(self, truth: GroundTruth, found: Detections) -> None:
        for method in ("scale", "constant"):
            with pytest.raises(InputError, match="with an object of its class; fit on images with"):
                fit(truth, found.select(np.zeros(0, np.int64)), method=method)

    def test_one_image_has_no_gain(self, truth: GroundTruth, found: Detections) -> None:
        one = truth.select_images(truth.image_ids[:1])
        fitted = fit(one, found)
        assert fitted.gain is None
        assert fitted.notes[-1] == Note("no-gain")
        assert fitted.notes[0] == Note("few-boxes-fitted", 6, least=30)

    def test_folds_without_pairs_have_no_gain(self, truth: GroundTruth, found: Detections) -> None:
        first = found.select(found.image_ids == truth.image_ids[0])
        fitted = fit(truth, first, target="nll")
        assert fitted.gain is None
        assert fitted.notes[-1] == (
            Note(
                "no-gain-of-folds",
                problem="no matched boxes: no detection reaches IoU 0.5 with an object of its class",
            )
        )

    def test_boxes_too_unsure_to_measure_have_no_gain(self) -> None:
        """Boxes that are off by 1,000 pixels: with the stds that they need, their heatmaps would be too large."""
        boxes = np.tile([[2000.0, 2000.0, 18000.0, 18000.0]], (6, 1))
        truth = GroundTruth.from_boxes(["cup"], dict.fromkeys(range(6), (20000, 20000)), range(6), boxes, [0] * 6)
        covariances = np.tile(25.0 * np.eye(2), (6, 2, 1, 1))
        sure = Detections(
            classes=["cup"], image_ids=range(6), boxes=boxes + 1000.0, label_probs=[[0.9]] * 6, covariances=covariances
        )
        for method in ("scale", "constant"):
            fitted = fit(truth, sure, method=method, target="nll", folds=2)
            assert fitted.gain is None
            assert fitted.notes[-1].code == "no-gain-of-folds"
            assert "its heatmap would need" in str(fitted.notes[-1])

    def test_few_images_make_few_folds(self, truth: GroundTruth, found: Detections) -> None:
        fitted = fit(truth.select_images(truth.image_ids[:3]), found)
        assert fitted.gain.folds == 3
        assert fitted.notes[-2:] == (
            Note("fewer-folds", 3, wanted=5),
            Note("few-images", 3, least=30),
        )
        assert fit(boxes_truth(30), found, target="nll", resamples=10).notes == ()

    def test_what_is_left_out(self, truth: GroundTruth, found: Detections) -> None:
        covariances = found.covariances.copy()
        covariances[:2] = 0
        covariances[2, 0] = [[1, 1], [1, 1]]
        notes = fit(truth, found.replace(covariances=covariances), target="nll").notes
        assert Note("plain-boxes-not-fitted", 2, total=72) in notes
        assert Note("singular-boxes-not-fitted", 1, total=72) in notes


def test_odd_worlds_end_in_a_fit_or_a_sentence() -> None:
    """Masks of a pixel, boxes outside, zero sizes, heatmaps, singular covariances."""
    outcomes = set()
    for seed in range(36):
        truth, found = random_world(seed, max_images=15)
        method = ("scale", "edge-scale", "class-scale", "isotonic", "constant", "conformal")[seed % 6]
        target = None if method == "conformal" else ("pdq", "nll", "coverage")[seed // 6 % 3]
        labels = ("none", "temperature", "isotonic")[seed // 2 % 3]
        try:
            fitted = fit(truth, found, method=method, target=target, label_method=labels, alpha=0.5, resamples=10)
        except InputError:
            outcomes.add("refused")
            continue
        outcomes.add("fitted" if fitted.gain else fitted.notes[-1].code)
        calibrated = fitted.calibration.apply(found)
        assert len(calibrated) == len(found)
        assert np.isfinite(probox.evaluate(truth, calibrated).summary()["TP"])
    assert outcomes == {"refused", "fitted", "no-gain-of-folds"}


def test_a_scale_for_pdq_is_on_the_lattice(truth: GroundTruth, found: Detections) -> None:
    mapping = fit(truth, found).calibration.corners
    assert isinstance(mapping, Scale)
    assert np.log(mapping.factor) / 0.02 == pytest.approx(round(np.log(mapping.factor) / 0.02), abs=1e-9)
    assert 1.0 < mapping.factor < 2.5


def test_classes_are_counted_in_words() -> None:
    level = MonotoneCurve((0.5,), (0.5,))
    for n, corners, labels in (
        (0, "", "one curve for all classes"),
        (1, " (1 class has its own factor)", "1 class has its own curve"),
        (2, " (2 classes have their own factors)", "2 classes have their own curves"),
    ):
        names = ("cup", "dog")[:n]
        curves = ScoreCurves(level, tuple((name, level) for name in names))
        calibration = Calibration(corners=ClassScale(2.0, tuple((name, 3.0) for name in names)), labels=curves)
        assert str(calibration) == f"std times 2{corners}; scores are mapped to precision ({labels})"


def test_labels_are_fitted_without_the_images_that_they_are_judged_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once on all images and once without each fold, also for the control: never on all of them for a fold."""
    truth = boxes_truth(12)
    found = simulated(truth)
    fitted_on: list[set[int]] = []
    plain = cross_validation.fit_labels

    def watched(pairs, table, targets, rows, method):
        fitted_on.append(set(table.image_ids[rows].tolist()))
        return plain(pairs, table, targets, rows, method)

    monkeypatch.setattr(cross_validation, "fit_labels", watched)
    fit(truth, found, method="scale", label_method="temperature", target="nll", folds=4)
    everywhere = set(truth.image_ids.tolist())
    assert fitted_on[0] == everywhere
    left_out = [everywhere - images for images in fitted_on[1:]]
    assert [len(images) for images in left_out] == [3, 3, 3, 3]
    assert set.union(*left_out) == everywhere


@pytest.fixture(scope="module")
def cut_off() -> tuple[GroundTruth, Detections]:
    """Return objects of which some are cut off by the image, and detections that wrongly end there now and then."""
    rng = np.random.default_rng(5)
    boxes = np.stack([[0, 30, 60, 90], [12, 10, 88, 50], [20, 40, 80, 100], [8, 10, 92, 60]] * 20).astype(float)
    sizes = dict.fromkeys(range(len(boxes)), (100, 100))
    truth = GroundTruth.from_boxes(["cup"], sizes, list(sizes), boxes, [0] * len(boxes))
    found = Detections(
        classes=["cup"],
        image_ids=list(sizes),
        boxes=np.clip(boxes + 5.0 * rng.standard_normal(boxes.shape), 0, 100),
        label_probs=np.full((len(boxes), 1), 0.9),
        covariances=np.tile(25.0 * np.eye(2), (len(boxes), 2, 1, 1)),
    )
    return truth, found


def pin(found: Detections) -> Detections:
    boxes, covariances = keep_inside(found.boxes, np.asarray(found.covariances), (100, 100))
    return found.replace(boxes=boxes, covariances=covariances, extents=None)


@pytest.mark.parametrize("change", [lambda found: found, pin], ids=["keep", "pin"])
def test_diagnosis_and_calibration_judge_the_same_edges(cut_off, change) -> None:
    """One file has one coverage, and one sentence about its edges on the border."""
    truth, found = cut_off[0], change(cut_off[1])
    diagnosis = probox.evaluate(truth, found).diagnose(replicates=20)
    fitted = fit(truth, found, target="nll", resamples=20)
    for level in (68, 90):
        coverage = diagnosis.numbers[f"coverage_{level}"]
        assert fitted.gain.changes[f"coverage{level}"].before == pytest.approx(coverage, abs=1e-12)
    (said,) = (note for note in fitted.notes if note.code == "edges-on-border-judged")
    assert said in diagnosis.notes
    pairs = probox.evaluate(truth, found).matched_pairs
    z = np.abs(pairs.residuals / np.sqrt(pairs.variances))[pairs.truncated]
    reach = 0.994457883  # 68% of a Gaussian
    assert str(said) == (
        f"40 of 320 edges lie on the image border and are excluded: {100 * (z <= reach).mean():.1f}% of them are in "
        f"their 68% interval, errors are {np.quantile(z, 0.6826894921, method='inverted_cdf'):.2g} times their std"
    )


def test_pinned_detections_are_noticed(cut_off) -> None:
    truth, found = cut_off
    kept = fit(truth, found, target="nll", resamples=10)
    pinned = fit(truth, pin(found), target="nll", resamples=10)
    assert not any(note.code == "pinned-edges-fitted" for note in kept.notes)
    changed = np.diagonal(pin(found).covariances, axis1=-2, axis2=-1) < 25.0
    (said,) = (note for note in pinned.notes if note.code == "pinned-edges-fitted")
    assert (said.count, dict(said.fields)) == (changed.sum(), {"total": 320})
    again = fit(truth, pin(found), border="pin", resamples=10)
    assert not any(note.code == "pinned-edges-fitted" for note in again.notes)


def test_a_fit_pins_on_request_only(cut_off) -> None:
    truth, found = cut_off
    kept, pinned = fit(truth, found, resamples=10), fit(truth, found, border="pin", resamples=10)
    assert (kept.calibration.border, pinned.calibration.border) == ("keep", "pin")
    assert (kept.held_out.boxes == found.boxes).all()
    assert pinned.held_out.covariances[:, :, 0, 0].min() == pytest.approx(0.0625)
    assert kept.held_out.covariances[:, :, 0, 0].min() > 1.0
    assert pinned.gain.changes["PDQ"].after > kept.gain.changes["PDQ"].after + 0.02
    with pytest.raises(InputError, match='border="pin" is only for target pdq, but the target is nll'):
        fit(truth, found, target="nll", border="pin")


@pytest.fixture(scope="module")
def pairs() -> FittingPairs:
    """Return 72 pairs with residuals of 1 and variances of 1."""
    truth = boxes_truth(12)
    pairs = FittingPairs.of(truth, simulated(truth))
    unit = np.tile(np.eye(2), (72, 2, 1, 1))
    return dataclasses.replace(pairs, residuals=np.ones((72, 4)), covariances=unit)


def scaled(pairs: FittingPairs, factors: np.ndarray) -> FittingPairs:
    return dataclasses.replace(pairs, covariances=pairs.covariances * np.square(factors)[:, None, None, None])


def growth(factor: float) -> float:
    """Return how NLL changes: 4 ln f + 2 (1 / f^2 - 1)."""
    return 4 * np.log(factor) + 2 * (factor**-2 - 1)


def test_other_reasons(pairs: FittingPairs) -> None:
    after = scaled(pairs, np.full(72, 0.5))
    said = f"NLL is worse by {growth(0.5):.3g} nats"
    (pdq,), (coverage,), (nll,) = (notes_on_nll(target, pairs, after) for target in ("pdq", "coverage", "nll"))
    assert str(pdq) == f"{said}: the fit is for PDQ, not for NLL"
    (pinned,) = notes_on_nll("pdq", pairs, after, "pin")
    assert str(pinned) == f'{said}: the fit is for PDQ, with std limited by border="pin"'
    assert str(coverage) == f"{said}: the fit is for coverage, not for NLL"
    assert str(nll).startswith(f"{said} on held-out images, although the fit is for NLL")


@pytest.mark.parametrize(("factor", "notes"), [(0.65, 1), (0.68, 0), (1.0, 0), (2.0, 1)])
def test_a_nat_is_much(pairs: FittingPairs, factor: float, notes: int) -> None:
    assert (growth(factor) > 1) == bool(notes)
    assert len(notes_on_nll("coverage", pairs, scaled(pairs, np.full(72, factor)))) == notes


def test_plain_boxes_have_no_nll_to_get_worse(pairs: FittingPairs) -> None:
    plain = dataclasses.replace(pairs, usable=np.zeros(72, bool))
    assert notes_on_nll("pdq", plain, scaled(pairs, np.full(72, 0.1))) == ()


def table(best: list[float]) -> Detections:
    return Detections(
        classes=["cup", "dog"], image_ids=[1] * len(best), boxes=[[0, 0, 9, 9]] * len(best),
        label_probs=[[0.1, p] for p in best],
    )  # fmt: skip


def test_detections_below_the_threshold_are_counted() -> None:
    before, after = table([0.9, 0.8, 0.6, 0.5, 0.3]), table([0.7, 0.5, 0.4, 0.45, 0.6])
    assert notes_on_threshold(before, after, 0.5) == (Note("fall-below-threshold", 2, total=3, threshold=0.5),)
    assert notes_on_threshold(before, after, None) == ()
    assert notes_on_threshold(before, before, 0.5) == ()


def test_a_fit_that_lowers_scores_says_so(truth: GroundTruth) -> None:
    """Labels that are mostly wrong."""
    found = simulated(truth, false_per_image=40)
    fitted = fit(truth, found, target="coverage", label_method="isotonic", label_threshold=0.8, resamples=10)
    lost = (found.label_probs.max(axis=1) > 0.8) & ~(fitted.held_out.label_probs.max(axis=1) > 0.8)
    assert lost.sum() > 0
    assert any(
        f"{lost.sum()} of " in text and "below the label threshold 0.8" in text
        for text in tuple(map(str, fitted.notes))
    )
    same = fit(truth, found, target="coverage", label_threshold=0.8, resamples=10)
    assert not any("threshold" in text for text in tuple(map(str, same.notes)))


def test_a_fit_that_forgets_what_sigmas_knew_says_so(truth: GroundTruth) -> None:
    """Sigmas that know every error, replaced by a constant."""
    found = simulated(truth)
    pairs = FittingPairs.of(truth, found)
    variances = np.ones((len(found), 4))
    variances[pairs.detections] = np.maximum(np.square(pairs.residuals), 0.01)
    covariances = np.zeros((len(found), 2, 2, 2))
    covariances[:, :, [0, 1], [0, 1]] = variances.reshape(-1, 2, 2)
    fitted = fit(truth, found.replace(covariances=covariances), method="constant", target="coverage", resamples=10)
    worse = -fitted.gain.changes["NLL"].gain
    assert worse > 1
    assert str(fitted.notes[-1]) == f"NLL is worse by {worse:,.3g} nats: the fit is for coverage, not for NLL"
