"""The metric beside torchmetrics', in two processes, and in real Lightning trainings."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import frameworks
from tests.amounts import others_slow
from tests.docs.snippets import run_section

import probox
from probox import PDQ, InputError
from probox.adapters import lightning_callback

torch: Any = None  # loaded when the first test asks, so that collecting tests stays quick
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # frameworks warn of their own affairs


@pytest.fixture(autouse=True, scope="module")
def _frameworks() -> None:
    global torch
    torch = frameworks.torch()
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def lightning(_frameworks: None) -> Any:
    frameworks.torchvision()  # torchmetrics looks for it
    with frameworks.quiet():
        return pytest.importorskip("lightning")


@pytest.fixture
def example(lightning: Any) -> Any:
    from examples import lightning_callback as module

    return module


def some_dictionaries(count: int, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    generator = torch.Generator().manual_seed(seed)
    preds, target = [], []
    for image in range(count):
        objects = int(torch.randint(0, 7, (1,), generator=generator))
        low = torch.rand((objects, 2), generator=generator) * 200
        boxes = torch.cat([low, low + 5 + torch.rand((objects, 2), generator=generator) ** 2 * 150], dim=1)
        labels = torch.randint(1, 4, (objects,), generator=generator)
        crowd = (torch.rand(objects, generator=generator) < 0.1).int()
        target.append({"boxes": boxes, "labels": labels, "iscrowd": crowd, "image_id": torch.tensor([image])})
        found = torch.cat([boxes + torch.randn(boxes.shape, generator=generator) * 3, boxes[: objects // 2] + 10])
        found = torch.cat([found[:, :2], torch.maximum(found[:, 2:], found[:, :2] + 1)], dim=1)
        named = torch.cat([labels, torch.randint(1, 4, (objects // 2,), generator=generator)])
        preds.append({"boxes": found, "labels": named, "scores": torch.rand(len(found), generator=generator)})
    return preds, target


@pytest.mark.parametrize("seed", others_slow(range(4)))
def test_map_is_that_of_torchmetrics(lightning: Any, seed: int) -> None:
    pytest.importorskip("pycocotools")
    from torchmetrics.detection import MeanAveragePrecision

    preds, target = some_dictionaries(25, seed)
    # Its own thresholds are of single precision, and meet recalls of k / n a hair too high: 2e-4 of mAP.
    exact = {"iou_thresholds": np.linspace(0.5, 0.95, 10).tolist(), "rec_thresholds": np.linspace(0, 1, 101).tolist()}
    theirs = MeanAveragePrecision(box_format="xyxy", class_metrics=True, **exact)
    ours = PDQ(("cup", "dog", "car"), first_label=1)
    for start in range(0, 25, 10):
        theirs.update(preds[start : start + 10], copy.deepcopy(target[start : start + 10]))
        ours.update(preds[start : start + 10], target[start : start + 10])
    expected, numbers = theirs.compute(), ours.compute()
    assert 0.1 < numbers["mAP"] < 0.9
    for name, key in (("mAP", "map"), ("AP50", "map_50"), ("AP75", "map_75")):
        assert numbers[name] == pytest.approx(float(expected[key]), abs=1e-6), name
    precision = ours.result().average_precision
    np.testing.assert_allclose(precision.per_class().columns["AP"], expected["map_per_class"].numpy(), atol=1e-6)
    sizes = precision.ap_small, precision.ap_medium, precision.ap_large
    wanted = np.array([float(expected[f"map_{name}"]) for name in ("small", "medium", "large")])
    np.testing.assert_allclose(sizes, np.where(wanted < 0, np.nan, wanted), atol=1e-6)


def test_tensors_of_any_kind() -> None:
    preds, target = some_dictionaries(6, 0)
    expected = PDQ(("cup", "dog", "car"), first_label=1)
    expected.update(preds, target)
    for kind in (torch.float64, torch.float16, torch.bfloat16):
        metric = PDQ(("cup", "dog", "car"), first_label=1)
        changed = [entry | {"scores": entry["scores"].to(kind).requires_grad_()} for entry in preds]
        metric.update(changed, target)
        assert metric.compute()["PDQ"] == pytest.approx(expected.compute()["PDQ"], rel=0.02)


TWO_PROCESSES = """
import os, sys, warnings
import torch
import torch.distributed as dist
from types import SimpleNamespace as Of
from probox import PDQ
from probox.adapters import UltralyticsPDQ
torch.set_num_threads(1)
child = os.fork()
rank = 0 if child else 1
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)

def image(number):
    box = torch.tensor([[10.0 + number, 10.0, 40.0, 40.0 + number]])
    return (
        {"boxes": box + 1, "labels": torch.tensor([0]), "scores": torch.tensor([0.5 + number / 20])},
        {"boxes": box, "labels": torch.tensor([0]), "image_id": number, "image_size": (64, 64)},
    )

def fed(numbers):
    metric = PDQ(["cup", "dog"])
    for number in numbers:
        preds, target = image(number)
        metric.update([preds], [target])
    return metric

shares = ([0, 2, 4, 6], [1, 3, 5, 0])  # a sampler fills up the last share
metric = fed(shares[rank])
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    alone = metric.compute()
assert any(f"process {rank} of 2 alone: call sync()" in str(warning.message) for warning in said), said
together = metric.sync().compute()
# The same in a validation, where the second process has nothing.
watch = UltralyticsPDQ()
watch._metric = fed(range(7)) if rank == 0 else None
watch._around_gather(Of(names=["cup", "dog"]), lambda: None)
numbers = [together["PDQ"], alone["PDQ"], watch._metric.compute()["PDQ"]]
os.write(1, " ".join([str(rank), str(len(metric)), *map(repr, numbers)]).encode() + b"\\n")  # whole lines
dist.barrier()
dist.destroy_process_group()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
def test_two_processes_have_the_numbers_of_one(tmp_path: Path) -> None:
    if not torch.distributed.is_available() or not hasattr(sys.modules["os"], "fork"):
        pytest.skip("this torch knows no other processes")
    run = subprocess.run(
        [sys.executable, "-c", TWO_PROCESSES, str(tmp_path / "meeting")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = sorted(line.split() for line in run.stdout.splitlines())
    expected = PDQ(["cup", "dog"])
    for number in range(7):
        box = np.array([[10.0 + number, 10.0, 40.0, 40.0 + number]])
        expected.update(
            [{"boxes": box + 1, "labels": [0], "scores": np.float32([0.5 + number / 20])}],
            [{"boxes": box, "labels": [0], "image_id": number, "image_size": (64, 64)}],
        )
    pdq = repr(expected.compute()["PDQ"])
    assert [line[:3] for line in lines] == [["0", "7", pdq], ["1", "7", pdq]]
    assert lines[0][3] != lines[1][3]
    assert [line[4] for line in lines] == [pdq, pdq]


def outside(module: Any, example: Any) -> dict[str, float]:
    boxes, probs, ids, variances = [], [], [], []
    truth_boxes, truth_ids, labels = [], [], []
    module.eval()
    for pixels, target in example.make_images(12, 2):
        with torch.no_grad():
            box, log_var, logits = module(pixels[None])
        boxes.append(box[0].numpy())
        probs.append(logits.softmax(dim=1)[0, 1:].numpy())
        variances.append(log_var.exp()[0].numpy())
        ids.append(int(target["image_id"]))
        truth_boxes.append(target["boxes"][0].numpy())
        truth_ids.append(int(target["image_id"]))
        labels.append(int(target["labels"][0]) - 1)
    truth = probox.GroundTruth.from_boxes(
        example.CLASSES, dict.fromkeys(ids, (example.SIDE,) * 2), truth_ids, truth_boxes, labels
    )
    found = probox.Detections.from_scores(boxes, probs, classes=example.CLASSES, image_ids=ids, var=variances)
    return probox.evaluate(truth, found).summary()


def test_a_training_logs_pdq_in_every_epoch(example: Any, lightning: Any) -> None:
    history = []

    class Watch(lightning.Callback):  # type: ignore[misc]
        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
            history.append((trainer.sanity_checking, logged, outside(copy.deepcopy(pl_module), example)))

    callback = lightning_callback(probox.PDQ(("background", *example.CLASSES)), log=("PDQ", "mAP"))
    quiet = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    torch.manual_seed(0)
    loaders = [
        torch.utils.data.DataLoader(example.make_images(count, seed), batch_size=8, collate_fn=example.collate)
        for count, seed in ((64, 1), (12, 2))
    ]
    trainer = lightning.Trainer(max_epochs=3, callbacks=[callback, Watch()], enable_model_summary=False, **quiet)
    trainer.fit(example.make_module(), *loaders)
    sanity, *epochs = history
    assert sanity[0]
    assert "val_PDQ" not in sanity[1]
    assert len(epochs) == 3
    for checked, logged, expected in epochs:
        assert not checked
        assert logged["val_PDQ"] == pytest.approx(expected["PDQ"], rel=1e-5)
        assert logged["val_mAP"] == pytest.approx(expected["mAP"], rel=1e-5)
    assert epochs[-1][1]["val_PDQ"] > 0.3
    assert len(callback.results[0].dataset) == 12


def test_several_loaders_tests_and_empty_predictions(example: Any, lightning: Any) -> None:
    nothing = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.long), "scores": torch.zeros(0)}

    class Blind(lightning.LightningModule):  # type: ignore[misc]
        def validation_step(self, batch: Any, index: int, dataloader_idx: int = 0) -> Any:
            return [nothing for _ in batch[1]]

        def test_step(self, batch: Any, index: int) -> None:
            return None

    callback = lightning_callback(
        PDQ(["a", "b"], first_label=1, measures=["pdq"]),
        log=("PDQ", "FN"),
        read=lambda outputs, batch: (outputs or [nothing for _ in batch[1]], batch[1]),
    )
    loaders = [
        torch.utils.data.DataLoader(example.make_images(count, 2), batch_size=4, collate_fn=example.collate)
        for count in (3, 6)
    ]
    quiet = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(callbacks=[pickle.loads(pickle.dumps(lightning_callback()))], **quiet)
    with pytest.raises(InputError, match="validation_step to return a dictionary with 'preds' and 'target'"):
        trainer.validate(Blind(), loaders, verbose=False)
    trainer = lightning.Trainer(callbacks=[callback], **quiet)
    trainer.validate(Blind(), loaders, verbose=False)
    assert float(trainer.callback_metrics["val_PDQ/dataloader_idx_0"]) == 0.0
    assert float(trainer.callback_metrics["val_FN/dataloader_idx_1"]) == 6.0
    trainer.test(Blind(), loaders[0], verbose=False)
    assert float(trainer.callback_metrics["test_FN"]) == 3.0


def test_wrong_arguments_are_named(lightning: Any) -> None:
    with pytest.raises(InputError, match="unknown number 'pdq'"):
        lightning_callback(log=["pdq"])
    with pytest.raises(InputError, match="metric to be"):
        lightning_callback(["cup"])  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_snippets_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_section("training-loop", tmp_path, monkeypatch)
