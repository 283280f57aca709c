"""The spread head with a network: what it learns that a linear law cannot, when it stands aside, what it refuses."""

from __future__ import annotations

import dataclasses
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.amounts import others_slow

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from click.testing import CliRunner  # noqa: E402
from tests.worlds import boxes_truth  # noqa: E402

import probox  # noqa: E402
from probox import Detections, GroundTruth, InputError  # noqa: E402
from probox.calibration import Calibration, SpreadHead, fit  # noqa: E402
from probox.calibration import fit_spread as fit_linear  # noqa: E402
from probox.calibration.corners import Learned  # noqa: E402
from probox.calibration.learning import EdgeErrors  # noqa: E402
from probox.calibration.spread_network import Layer, Network  # noqa: E402
from probox.cli import cli  # noqa: E402
from probox.cli.calibrate import NETWORK_LOSSES  # noqa: E402
from probox.demo import Demo  # noqa: E402
from probox.formats.writing import write_detections  # noqa: E402
from probox.torch import NetworkLearner, SpreadNetwork, crps_loss, energy_score_loss, fit_spread, nll_loss  # noqa: E402
from probox.torch.spread_loss import LOSSES, SpreadLoss, unit_of  # noqa: E402
from probox.torch.spread_training import outputs  # noqa: E402


def hill(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, errors and sigmas that are high in the middle of the first feature."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    sigmas = np.exp(1.0 - 2.0 * x[:, :1] ** 2 + 0.3 * x[:, 1:]) * [1.0, 1.0, 1.2, 1.0]
    return x, rng.normal(size=(n, 4)) * sigmas, sigmas


def agreement(said: np.ndarray, true: np.ndarray) -> float:
    return float(np.corrcoef(np.log(said).ravel(), np.log(true).ravel())[0, 1])


def middling(truth: GroundTruth, seed: int = 0) -> tuple[Detections, np.ndarray]:
    """Return detections that err most where scores are in the middle, and their sigmas."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.2, 0.95, len(truth))
    sides = np.tile(truth.boxes[:, 2:] - truth.boxes[:, :2], 2)
    sigmas = sides * np.exp(-2.5 - 12 * (scores[:, None] - 0.6) ** 2)
    found = Detections.from_scores(
        truth.boxes + rng.normal(size=sigmas.shape) * sigmas, scores, truth.labels, classes=truth.classes,
        image_ids=truth.dataset.image_ids[truth.image_rows],
    )  # fmt: skip
    return found, sigmas


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return boxes_truth(50)


@pytest.mark.parametrize("loss", others_slow(["nll", "energy", "crps"]))
def test_what_is_not_linear_is_found(loss: str) -> None:
    x, errors, _ = hill(400)
    new, _, sigmas = hill(300, 1)
    head = fit_spread(x, errors, loss=loss, images=np.arange(400) // 4, folds=2, decay=3.0)
    assert agreement(head.predict(new), sigmas) > 0.9
    assert agreement(fit_linear(x, errors).predict(new), sigmas) < 0.6
    assert head.law_.network is not None
    (note,) = head.notes_
    assert note.startswith("a network of 32 besides, trained in ")
    assert f"better than the linear law in {loss} on held-out images (+" in note
    z = errors / head.predict(x)
    assert np.mean(z**2) == pytest.approx(1), "the height is that of the target"


@pytest.mark.slow
def test_tables_are_learned_from_too(truth: GroundTruth) -> None:
    found, _ = middling(truth)
    others = boxes_truth(20, seed=9)
    new, sigmas = middling(others, 1)
    head = SpreadNetwork(folds=2).fit(found, truth)
    linear = SpreadHead(folds=2).fit(found, truth)
    assert agreement(head.predict(new), sigmas) > 0.9 > agreement(linear.predict(new), sigmas) + 0.2
    assert np.mean(np.log(head.predict(new) / sigmas)) == pytest.approx(0, abs=0.1), "the height is that of the target"
    covering = SpreadNetwork(folds=2, target="coverage", level=0.3).fit(found, truth)
    ratio = covering.predict(new) / head.predict(new)
    assert ratio == pytest.approx(ratio[0, 0]), "the target sets the height of all, and nothing else"
    assert ratio[0, 0] != pytest.approx(1, abs=0.01)
    assert head.apply(new).covariances is not None
    fitted = fit(truth, found, method="learned", target="nll", folds=2, resamples=1, learner=NetworkLearner(folds=2))
    assert fitted.calibration.corners == head.mapping_, "the function and the head are one"
    assert any(note.startswith("a network of 32") for note in fitted.notes)
    assert "a network of 32 hidden units" in str(fitted.calibration)
    assert fitted.gain is not None
    before = fit(truth, found, method="learned", target="nll", folds=2, resamples=1).gain
    assert before is not None
    assert fitted.gain.changes["NLL"].after < before.changes["NLL"].after - 0.1
    assert fitted.gain.over_constant["NLL"].gain > before.over_constant["NLL"].gain


@pytest.mark.slow
def test_ppdq_is_for_tables(truth: GroundTruth) -> None:
    some = truth.select_images(truth.image_ids[:30])
    found, sigmas = middling(truth)
    head = SpreadNetwork(loss="ppdq", folds=2, decay=0.1).fit(found, some)
    assert "better than the linear law in ppdq on held-out images" in head.notes_[0]
    linear = agreement(SpreadHead(folds=2).fit(found, some).predict(found), sigmas)
    assert agreement(head.predict(found), sigmas) > linear + 0.2
    x, errors, _ = hill(40)
    with pytest.raises(InputError, match='pPDQ needs boxes; use another loss, such as "nll", or fit on tables'):
        fit_spread(x, errors, loss="ppdq")


@pytest.mark.parametrize("images", [200, 30])
def test_linear_data_are_left_to_the_linear_law(images: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (2 * images, 2))
    errors = rng.normal(size=(len(x), 4)) * np.exp(x[:, :1] - 0.5 * x[:, 1:])
    groups = np.arange(len(x)) // 2
    head = fit_spread(x, errors, images=groups, folds=3)
    assert head.law_ == fit_linear(x, errors, images=groups, folds=3).law_
    assert head.law_.network is None
    assert head.notes_[0].startswith("the linear law stands alone: a network of 32 is not surely better in nll")


def test_one_image_says_nothing_for_a_network() -> None:
    x, errors, _ = hill(60)
    head = fit_spread(x, errors, images=np.zeros(60, int))
    assert head.law_.network is None
    assert head.notes_ == (
        "the linear law stands alone: of one image none can be held out, so nothing speaks for a network",
    )


def test_seeds_decide_and_threads_do_not() -> None:
    x, errors, _ = hill(200)
    settings: dict[str, Any] = {"folds": 2, "decay": 3.0, "hidden": (8, 4)}
    first = fit_spread(x, errors, **settings)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.manual_seed(99)
        second = fit_spread(x, errors, **settings)
        assert torch.get_num_threads() == 2, "left as it was"
    finally:
        torch.set_num_threads(before)
    assert first.law_ == second.law_
    assert first.law_.network is not None
    assert first.law_.network.hidden == (8, 4)
    assert first.law_ != fit_spread(x, errors, seed=1, **settings).law_


def test_units_do_not_matter() -> None:
    x, errors, _ = hill(150)
    settings: dict[str, Any] = {"folds": 2, "decay": 3.0, "loss": "crps"}
    small, large = (fit_spread(x, unit * errors, **settings).predict(x) for unit in (1e-4, 1e3))
    assert large == pytest.approx(1e7 * small, rel=1e-4)


def test_numpy_says_what_torch_says() -> None:
    rng = np.random.default_rng(0)
    sizes = (3, 7, 5, 1)
    pieces = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in itertools.pairwise(sizes)]
    network = Network(tuple(Layer(tuple(map(tuple, w.tolist())), tuple(b.tolist())) for w, b in pieces))
    inputs = rng.normal(size=(40, 4, 3))
    said = outputs([(torch.from_numpy(w), torch.from_numpy(b)) for w, b in pieces], torch.from_numpy(inputs))
    assert network(inputs) == pytest.approx(said.numpy(), abs=1e-12, rel=0)
    assert said.shape == (40, 4)
    assert network.hidden == (7, 5)


def test_the_network_adds_to_the_law() -> None:
    x, errors, _ = hill(400)
    law = fit_spread(x, errors, folds=2, decay=3.0).law_
    assert law.network is not None
    features = np.repeat(np.concatenate([x, [[50.0, -50.0]]])[:, None], 4, axis=1)
    alone = dataclasses.replace(law, network=None)
    inputs = law.inputs(features)
    assert np.abs(inputs).max() == 2, "what is far from all that was seen says no more"
    ratio = np.log(law.relative_sigmas(features)) - np.log(alone.relative_sigmas(features))
    assert ratio == pytest.approx(law.network(inputs), abs=1e-12)


def test_edges_that_do_not_count_add_nothing() -> None:
    """The loss of the other edges alone is what probox.torch says of them."""
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=(6, 4)) * 3
    logs = torch.from_numpy(rng.normal(size=(6, 4)) * 0.3)
    gaps = residuals.copy()
    gaps[:, 2] = np.nan
    errors = EdgeErrors(features=np.zeros((6, 4, 1)), residuals=gaps, sides=np.full((6, 4), 2.0), names=("a",))
    far = torch.tensor([[0.0, 0, 100, 100]]).double().expand(6, 4)
    for name, loss in (("nll", nll_loss), ("energy", energy_score_loss), ("crps", crps_loss)):
        whole = EdgeErrors(**(vars(errors) | {"residuals": residuals}))
        expected = loss(far, log_std=logs + np.log(2), truth_boxes=far + torch.from_numpy(residuals), reduction="none")
        assert SpreadLoss(whole, name, 1.0).each(logs).numpy() == pytest.approx(expected.numpy(), rel=1e-9)
        given = logs.clone().requires_grad_()
        SpreadLoss(errors, name, 1.0).each(given).sum().backward()
        assert given.grad is not None
        assert (given.grad[:, 2] == 0).all()
        assert (given.grad[:, [0, 1, 3]] != 0).all()
        moved = EdgeErrors(**(vars(errors) | {"residuals": gaps * 5}))
        assert unit_of(moved, name) == pytest.approx(5 * unit_of(errors, name))
    energy = SpreadLoss(errors, "energy", 1.0).each(logs)
    sure = residuals.copy()
    sure[:, 2] = 0
    three = logs + np.log(2)
    three[:, 2] = np.log(1e-3)
    expected = energy_score_loss(far, log_std=three, truth_boxes=far + torch.from_numpy(sure), reduction="none")
    assert energy.numpy() == pytest.approx(expected.numpy(), rel=1e-9)


def test_parameters_are_like_those_of_scikit_learn() -> None:
    head = SpreadNetwork(hidden=(4,), loss="crps")
    assert head.get_params() == {"hidden": (4,), "loss": "crps", "decay": None} | SpreadHead().get_params()
    assert SpreadNetwork(**head.get_params()).get_params() == head.get_params()
    assert head.set_params(decay=2.0, target="coverage") is head
    assert (head.decay, head.target) == (2.0, "coverage")
    assert repr(head).startswith("SpreadNetwork(hidden=(4,), loss='crps', decay=2.0, target='coverage'")
    assert tuple(LOSSES) == NETWORK_LOSSES


def test_refusals(truth: GroundTruth) -> None:
    x, errors, _ = hill(40)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"hidden": ()}, r"expected hidden to be 1 to 8 whole numbers from 1 to 1024, but got \(\)"),
        ({"hidden": (0,)}, "expected hidden"),
        ({"hidden": (True,)}, "expected hidden"),
        ({"hidden": "32"}, "expected hidden"),
        ({"hidden": (4,) * 9}, "expected hidden"),
        ({"hidden": (1025,)}, "expected hidden"),
        ({"loss": "dmm"}, "expected loss to be one of nll, energy, crps, ppdq, but got 'dmm'"),
        ({"loss": None}, "expected loss"),
        ({"decay": 0}, "expected decay to be a number above 0, or None, but got 0"),
        ({"decay": float("nan")}, "expected decay"),
        ({"folds": 1}, "expected folds to be a whole number from 2"),
        ({"colour": 1}, "a spread head has no parameter 'colour'; use hidden, loss, decay, target"),
    ]
    for parameters, message in wrong:
        with pytest.raises(InputError, match=message):
            fit_spread(x, errors, **parameters)
    with pytest.raises(InputError, match="expected seed to be a whole number from 0"):
        NetworkLearner(seed=-1)
    with pytest.raises(InputError, match="only 29 matched boxes to learn sigmas from"):
        fit_spread(x[:29], errors[:29])
    found, _ = middling(truth)
    with pytest.raises(InputError, match='a learner is for what is learned, not for constant; use method="learned"'):
        fit(truth, found, method="constant", learner=NetworkLearner())
    with pytest.raises(InputError, match="expected learner to be callable, but got 3"):
        fit(truth, found, method="learned", learner=3)


@pytest.mark.slow
def test_the_command_trains_stores_and_applies(truth: GroundTruth, tmp_path: Path) -> None:
    found, _ = middling(truth)
    given, here = tmp_path / "found.coco.json", tmp_path / "truth.json"
    write_detections(given, found, truth)
    boxes = truth.boxes
    here.write_text(
        json.dumps(
            {
                "images": [
                    {"id": int(i), "width": int(w), "height": int(h)}
                    for i, (w, h) in zip(truth.image_ids, truth.dataset.shapes, strict=True)
                ],
                "categories": [{"id": at + 1, "name": name} for at, name in enumerate(truth.classes)],
                "annotations": [
                    {
                        "id": at + 1, "image_id": int(truth.dataset.image_ids[truth.image_rows[at]]),
                        "category_id": int(truth.labels[at]) + 1, "iscrowd": 0, "area": 1.0,
                        "bbox": [*map(float, boxes[at, :2]), *map(float, boxes[at, 2:] - boxes[at, :2] + 1)],
                    }
                    for at in range(len(truth))
                ],
            }
        )
    )  # fmt: skip
    out, new = tmp_path / "c.json", tmp_path / "new.coco.json"
    words = ["calibrate", "fit", str(here), str(given), "--method", "learned", "--for", "nll", "--folds", "2"]
    done = CliRunner().invoke(cli, [*words, "--hidden", "8", "--loss", "crps", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "note: a network of 8 besides, trained in" in done.output
    calibration = Calibration.load(out)
    assert isinstance(calibration.corners, Learned)
    assert calibration.corners.law.network is not None
    assert calibration.corners.law.network.hidden == (8,)
    assert Calibration.from_json(json.loads(out.read_text())) == calibration
    # Applying needs no torch.
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from probox.cli import cli\n"
        f"cli(['calibrate', 'apply', {str(out)!r}, {str(given)!r}, '--out', {str(new)!r}])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
    read = probox.read_detections(new, truth)
    expected = calibration.apply(probox.read_detections(given, truth))
    assert read.covariances == pytest.approx(expected.covariances)


def test_the_command_refuses_in_a_line(demo: Demo, demo_files: Path, tmp_path: Path) -> None:
    files = [str(demo_files / "truth.json"), str(demo_files / "sure.json"), "--out", str(tmp_path / "c.json")]
    for words, message in (
        (["--hidden", "4"], "--hidden is for --method learned, not for scale"),
        (["--hidden", "4", "--loss", "nll"], "--hidden and --loss are for --method learned, not for scale"),
        (["--method", "learned", "--hidden", "4,0"], "expected hidden to be 1 to 8 whole numbers from 1 to 1024"),
        (["--method", "learned", "--hidden", "4,"], "'4,' is no list of whole numbers such as 32 or 32,16"),
        (["--method", "learned", "--loss", "dmm"], "'dmm' is not one of"),
    ):
        done = CliRunner().invoke(cli, ["calibrate", "fit", *files, *words])
        assert done.exit_code != 0
        assert message in done.output + str(done.exception)
        assert not (tmp_path / "c.json").exists()


def test_without_torch_a_line_says_how_to_get_it(demo_files: Path, tmp_path: Path) -> None:
    words = ["calibrate", "fit", str(demo_files / "truth.json"), str(demo_files / "sure.json"), "--method", "learned"]
    words += ["--hidden", "4", "--out", str(tmp_path / "c.json")]
    code = f"import sys; sys.modules['torch'] = None\nfrom probox.cli import main\nsys.argv[1:] = {words!r}\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("probox: training needs torch; install it with: ")
    assert done.stderr.endswith("install 'probox[torch]'\n")
    assert done.stderr.count("\n") == 1
