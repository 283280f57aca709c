"""The large view's own script, run by Node: samples of Gaussians, places of labels, zoom, colours of probabilities."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from tests.explorer.node import needs_node, run

import probox
from probox import Convention
from probox.explorer.page import constants
from probox.explorer.payload import chunk_payloads

pytestmark = needs_node

# --- samples --------------------------------------------------------------------------------------------------------

DRAW = """
globalThis.matchMedia = () => ({ addEventListener() {} });
const answer = input.cases.map(({ box, corners, seed, count }) =>
  Array.from({ length: count }, (_, number) => probox.sampleBox({ box, corners }, seed, number)));
"""


def draws(box: list[float], both: np.ndarray, *, seed: int = 7, count: int = 20_000) -> np.ndarray:
    corners = both[:, [0, 0, 1], [0, 1, 1]].tolist()
    case = {"box": box, "corners": corners, "seed": seed, "count": count}
    return np.array(run(DRAW, {"cases": [case]})[0])


BOX = [20.0, 30.0, 80.0, 90.0]


@pytest.mark.parametrize(
    "both",
    [
        [[[9, 4], [4, 6]], [[25, -12], [-12, 16]]],
        [[[4, 4], [4, 4]], [[0, 0], [0, 2]]],  # both axes one; one axis without variance
        [[[0.04, 0], [0, 400]], [[9, -9], [-9, 9]]],
    ],
)
def test_samples_have_the_gaussians_mean_and_covariance(both: Any) -> None:
    matrices = np.array(both, float)
    found = draws(BOX, matrices)
    deviations = np.sqrt(np.maximum(matrices[:, [0, 1], [0, 1]].reshape(4), 1e-30))
    # Five standard errors of a mean and of a variance of 20,000 draws.
    assert np.abs((found.mean(axis=0) - BOX) / deviations).max() < 5 / np.sqrt(20_000)
    expected = np.zeros((4, 4))
    expected[:2, :2], expected[2:, 2:] = matrices
    scale = np.outer(deviations, deviations)
    assert (np.abs(np.cov(found.T) - expected) / scale).max() < 5 * np.sqrt(2 / 20_000)
    # And they are Gaussian: as many beyond 1 and 2 deviations as there should be.
    standard = ((found - BOX) / deviations)[:, deviations > 1e-10]
    for limit, share in ((1.0, 0.3173), (2.0, 0.0455)):
        np.testing.assert_allclose((np.abs(standard) > limit).mean(axis=0), share, atol=5 * np.sqrt(share / 20_000))


def test_one_sample_says_nothing_about_the_next() -> None:
    found = draws(BOX, np.array([np.eye(2) * 4, np.eye(2) * 9]))
    other = draws(BOX, np.array([np.eye(2) * 4, np.eye(2) * 9]), seed=8)
    for a, b in ((found[:-1], found[1:]), (found, other)):
        together = np.corrcoef(a.T, b.T)[:4, 4:]
        assert np.abs(together).max() < 5 / np.sqrt(20_000)


def test_the_same_seed_draws_the_same_and_plain_boxes_have_no_samples() -> None:
    both = np.array([[[9, 4], [4, 6]], [[25, -12], [-12, 16]]], float)
    np.testing.assert_array_equal(draws(BOX, both, count=5), draws(BOX, both, count=9)[:5])
    assert (draws(BOX, both, count=5) != draws(BOX, both, count=5, seed=8)).all()
    script = DRAW.replace("probox.sampleBox({ box, corners }", "probox.sampleBox({ box, corners: null }")
    case = {"box": BOX, "corners": both.tolist(), "seed": 1, "count": 2}
    assert run(script, {"cases": [case]}) == [[None, None]]


def test_older_samples_fade_and_still_ones_are_always_the_same() -> None:
    script = """
    globalThis.matchMedia = () => ({ addEventListener() {} });
    const shown = (step, still) => probox.shownSamples(input, 3, step, still);
    const answer = [shown(0, false), shown(9, false), shown(10, false), shown(0, true), shown(9, true)];
    """
    first, later, next_, still, again = run(script, {"box": BOX, "corners": [[9, 4, 6], [25, -12, 16]]})
    assert len(first) == 1
    assert len(later) == len(next_) == 6
    assert [one["box"] for one in later[1:]] == [one["box"] for one in next_[:-1]]
    assert [one["strength"] for one in later] == sorted(one["strength"] for one in later)
    assert later[0]["strength"] < 0.2 < 0.9 < later[-1]["strength"]
    assert still == again
    assert len(still) == 12


# --- labels ---------------------------------------------------------------------------------------------------------

PLACE = """
const nearest = ([l, t, r, b]) => (x, y, inner) => inner ? [(l + r) / 2, (t + b) / 2]
  : [Math.min(Math.max(x, l), r), Math.min(Math.max(y, t), b)];
const answer = probox.placeLabels(input.labels.map((one) => ({ ...one, anchor: nearest(one.box) })), input.size);
"""


def place(labels: list[dict[str, Any]], size: tuple[int, int] = (400, 300)) -> list[dict[str, Any] | None]:
    given = [{"w": 60, "others": [], "objects": [], "far": True, **label} for label in labels]
    return list(run(PLACE, {"labels": given, "size": size}))


def test_a_label_at_its_box_needs_no_line() -> None:
    (label,) = place([{"box": [100, 100, 200, 150]}])
    assert label == {"x": 100, "y": 82, "leader": None}


def test_a_label_that_stands_off_has_a_line_to_its_own_box() -> None:
    box = [190, 140, 200, 150]
    labels = [label for label in place([{"box": box} for _ in range(12)]) if label]
    assert len(labels) >= 8
    for label in labels:
        x, y = label["x"], label["y"]
        # At its box, or a line leads from it to there.
        touches = x - 3 <= box[2] and x + 63 >= box[0] and y - 3 <= box[3] and y + 21 >= box[1]
        assert (label["leader"] is None) == touches
        if label["leader"]:
            x0, y0, x1, y1 = label["leader"]
            assert x <= x0 <= x + 60
            assert y <= y0 <= y + 18
            assert box[0] <= x1 <= box[2]
            assert box[1] <= y1 <= box[3]


def test_labels_stay_off_each_other_and_inside() -> None:
    random = np.random.default_rng(2)
    corners = random.uniform(0, 250, (40, 2))
    boxes = np.concatenate([corners, corners + random.uniform(5, 60, (40, 2))], axis=1)
    labels = place([{"box": box, "far": bool(n % 2)} for n, box in enumerate(boxes.tolist())])
    areas = [(one["x"], one["y"]) for one in labels if one]
    assert len(areas) > 20
    for n, (x, y) in enumerate(areas):
        assert 0 <= x <= 400 - 60
        assert 0 <= y <= 300 - 18
        for other_x, other_y in areas[:n]:
            assert abs(x - other_x) >= 60 or abs(y - other_y) >= 18


def test_a_label_on_another_object_has_a_line_even_at_its_own() -> None:
    own, other = [100, 100, 200, 150], [0, 0, 400, 300]
    (alone,) = place([{"box": own}])
    (label,) = place([{"box": own, "others": [other], "objects": [other]}])
    assert alone is not None
    assert alone["leader"] is None
    assert label is not None
    assert label["leader"][2:] == [150, 125]  # into its middle: its border is where the label is


def test_a_label_goes_where_nothing_else_is() -> None:
    own, above = [100, 100, 200, 150], [50, 60, 250, 100]
    (label,) = place([{"box": own, "others": [above], "objects": [above]}])
    assert label == {"x": 100, "y": 150, "leader": None}


def test_a_label_of_something_inside_another_stays_at_it() -> None:
    own, other, aside = [100, 100, 200, 150], [80, 60, 400, 300], [100, 70, 200, 100]
    (label,) = place([{"box": own, "others": [other, aside], "objects": []}])
    assert label == {"x": 100, "y": 150, "leader": None}  # off the one, though not off what holds both


def test_lines_end_in_the_mask() -> None:
    ring = {
        "filled": False,
        "x0": 0,
        "y0": 0,
        "x1": 9,
        "y1": 2,
        "runs": [[0, 0, 10], [1, 0, 2], [1, 7, 10], [2, 0, 10]],
    }
    script = "const answer = input.at.map(([x, y, inner]) => probox.pointOfMask(input.object, x, y, inner));"
    at = [[20, 1.5, False], [5, 1.5, False], [5, -4, False], [0, 0, True]]
    assert run(script, {"object": ring, "at": at}) == [[10, 1.5], [5, 1], [5, 0], [8.5, 1.5]]
    full = {"filled": True, "x0": 2, "y0": 3, "x1": 5, "y1": 4, "runs": []}
    at = [[0, 0, False], [9, 9, False], [0, 0, True]]
    assert run(script, {"object": full, "at": at}) == [[2, 3], [6, 5], [4, 4]]


# --- zoom -----------------------------------------------------------------------------------------------------------


def test_zoom_keeps_the_point_under_the_pointer() -> None:
    script = """
    let zoom = { scale: 1, x: 0, y: 0 };
    const answer = input.map(([factor, x, y]) => {
      const point = [(x - zoom.x) / zoom.scale, (y - zoom.y) / zoom.scale];
      zoom = probox.zoomed(zoom, factor, x, y);
      return { zoom, moved: [point[0] * zoom.scale + zoom.x - x, point[1] * zoom.scale + zoom.y - y] };
    });
    """
    answers = run(script, [[2, 100, 50], [1.5, 30, 80], [0.7, 10, 10], [100, 60, 60], [0.001, 5, 5]])
    for answer in answers[:4]:
        np.testing.assert_allclose(answer["moved"], 0, atol=1e-9)
    assert answers[3]["zoom"]["scale"] == 24
    assert answers[4]["zoom"] == {"scale": 1, "x": 0, "y": 0}  # never smaller than the window


# --- heatmaps -------------------------------------------------------------------------------------------------------


def brightness(red: float, green: float, blue: float) -> float:
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_higher_probabilities_are_brighter_and_stronger() -> None:
    colours = np.array(run("const answer = input.map(probox.heatColour);", np.linspace(0, 1, 51).tolist()))
    light = [brightness(*colour[:3]) for colour in colours.tolist()]
    assert np.all(np.diff(light) > 0)  # who sees no colours sees their order
    assert colours[0, 3] == 0
    assert np.all(np.diff(colours[:, 3]) >= 0)
    ends = ["#" + bytes(colours[i, :3].tolist()).hex() for i in (0, -1)]
    assert ends == [constants()["HEAT"][0], constants()["HEAT"][-1]]


def test_what_counts_as_a_plain_box_is_shown_as_one() -> None:
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (40, 40)}, [1], [[5, 5, 20, 20]], [0])
    odd = [[[4, -4], [-4, 4]], [[9, -9], [-9, 9]]]  # adds up to 0 without being 0
    found = probox.Detections(
        classes=["cup"], image_ids=[1], boxes=[[5, 5, 20, 20]], label_probs=[[1.0]], covariances=[odd]
    )
    for convention, numbers in ((Convention(), 4), (Convention.preset("paper"), 10)):
        result = probox.evaluate(truth, found, convention=convention)
        ((image,),) = chunk_payloads({"a": result}, result.masks, 50)
        assert len(base64.b64decode(image["d"][0])) == 4 * numbers
