"""Values that lie exactly on an end: of a filter's range, of a histogram's last bin, of two sizes."""

from __future__ import annotations

from tests.explorer.node import needs_node, run
from tests.explorer.test_selection import select

from probox import Detections, Evaluation, GroundTruth, evaluate
from probox.explorer.payload import index_payload

pytestmark = needs_node


def exact(side: float) -> Evaluation:
    """Return an object of a size, found exactly and with a label of 3/4."""
    box = [10.0, 10.0, 10.0 + side, 10.0 + side]
    truth = GroundTruth.from_boxes(["cup"], {1: (200, 200)}, [1], [box], [0])
    return evaluate(truth, Detections(classes=["cup"], image_ids=[1], boxes=[box], label_probs=[[0.75]]))


def test_both_ends_of_a_quality_pass() -> None:
    ranges = [(0.25, 0.75), (0.75, 0.9), (0.25, 0.74), (0.76, 1)]
    states = [{"quality": "label", "lo": low, "hi": high} for low, high in ranges]
    assert [told["sums"]["TP"] for told in select({"one": exact(40)}, states)] == [[1], [1], [0], [0]]


def test_a_quality_of_1_is_in_the_last_bin() -> None:
    evaluation = exact(40)
    assert evaluation.pairs.quality("foreground").tolist() == [1.0]
    index = index_payload({"one": evaluation}, [""], 50, [""])
    script = "const answer = probox.histogram(new probox.Store(input).view(0, null), 'foreground', 4);"
    assert run(script, index) == [0, 0, 0, 100]


def test_what_lies_on_a_limit_is_of_both_sizes() -> None:
    states = [{"size": size} for size in range(3)]
    for side, sizes in ((31, [1, 0, 0]), (32, [1, 1, 0]), (33, [0, 1, 0]), (96, [0, 1, 1]), (97, [0, 0, 1])):
        evaluation = exact(side)
        assert evaluation.objects.areas.tolist() == [side * side]
        assert [told["sums"]["TP"][0] for told in select({"one": evaluation}, states)] == sizes
