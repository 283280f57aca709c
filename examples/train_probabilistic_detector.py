"""Train a probabilistic detector with pPDQ as the loss: a template.

    python examples/train_probabilistic_detector.py --out found.json

trains a small detector on synthetic scenes in two stages: first with an L1 loss of its boxes, without covariances, then
with `probox.torch.ppdq_loss` and a head that predicts the covariances of corners. It prints PDQ after each stage and
writes the detections. It requires PyTorch (pip install 'probox[torch]') and takes about a minute.

YOURS marks the places to replace by your own code.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import probox
from probox.formats.registry import write_detections
from probox.torch import GaussianCorners, ppdq_loss
from probox_experiments.training.scenes import CLASSES, SIDE, Scenes, draw_scenes, render

STRIDE, CHANNELS = 8, 48
CELLS = SIDE // STRIDE


class Detector(nn.Module):
    """YOURS: any detector with a feature vector for each box.

    Each cell of a grid predicts whether an object is centred in it, its class and its box.
    """

    def __init__(self) -> None:
        super().__init__()
        widths = [3, 16, 32, CHANNELS, CHANNELS, CHANNELS]
        layers: list[nn.Module] = []
        for number, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
            stride = 2 if number < 3 else 1
            dilation = 1 if number < 4 else 2
            layers += [nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation, bias=False)]
            layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(CHANNELS, 1 + len(CLASSES) + 4)
        nn.init.constant_(self.head.bias[0], -3.5)  # most cells have no object
        # The only addition to a detector: maps the features of a box to the covariances of its corners.
        self.spread = GaussianCorners(CHANNELS, start_sigma=0.08)
        along = (torch.arange(CELLS) + 0.5) * STRIDE
        y, x = torch.meshgrid(along, along, indexing="ij")
        self.register_buffer("centres", torch.stack([x, y, x, y], -1).reshape(-1, 4))

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return features, objectness, label logits and boxes of all cells, (images, cells, ...)."""
        features = self.body(pictures / 127.5 - 1.0).flatten(2).transpose(1, 2)
        said = self.head(features)
        ways = torch.tensor([-1.0, -1.0, 1.0, 1.0]) * (14.0 + STRIDE * said[..., -4:])
        return features, said[..., 0], said[..., 1:-4], self.centres + ways


def owners(scenes: Scenes) -> torch.Tensor:
    """YOURS: the object assigned to each box: here to the cell at its centre, and -1 for other cells."""
    centres = (scenes.boxes[:, :2] + scenes.boxes[:, 2:] + 1.0) / 2
    cells = (centres // STRIDE).astype(int).clip(0, CELLS - 1)
    owner = np.full((scenes.count, CELLS * CELLS), -1)
    owner[scenes.image_rows, cells[:, 1] * CELLS + cells[:, 0]] = np.arange(len(scenes))
    return torch.from_numpy(owner)


def train(detector: Detector, scenes: Scenes, steps: int, rate: float, *, probabilistic: bool, seed: int) -> None:
    """Train for some steps, with or without covariances."""
    pictures, owner = torch.from_numpy(render(scenes)), owners(scenes)  # YOURS: a data loader
    truth, labels = torch.from_numpy(scenes.pixel_boxes).float(), torch.from_numpy(scenes.labels)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(detector.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.15)
    for step in range(steps):
        rows = torch.randint(scenes.count, (16,), generator=generator)
        features, objectness, logits, boxes = detector(pictures[rows])
        positive = owner[rows] >= 0
        which = owner[rows][positive]
        found = functional.binary_cross_entropy_with_logits(objectness, positive.float(), reduction="sum") / len(which)
        named = functional.cross_entropy(logits[positive], labels[which])
        if probabilistic:
            # x2 and y2 name the last pixel, as everywhere in probox; pass inclusive=False if yours are its outer edge.
            placed = ppdq_loss(
                boxes[positive],
                **detector.spread(features[positive], boxes[positive]).arguments(),
                label_logits=logits[positive],
                truth_labels=labels[which],
                truth_boxes=truth[which],  # or truth_masks= for objects with masks
                image_size=(SIDE, SIDE),
            )
        else:
            placed = 0.1 * (boxes[positive] - truth[which]).abs().sum(1).mean()
        loss = 0.2 * found + named + (3.0 if probabilistic else 1.0) * placed
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"  step {step + 1}: loss {float(loss.detach()):.3f}", flush=True)


@torch.no_grad()
def detect(detector: Detector, scenes: Scenes, *, probabilistic: bool) -> probox.Detections:
    """Return the detections in all images: cells with a higher score than their neighbours."""
    detector.eval()
    features, objectness, logits, boxes = detector(torch.from_numpy(render(scenes)))
    scores = objectness.sigmoid()
    grid = scores.reshape(-1, 1, CELLS, CELLS)
    peaks = (functional.max_pool2d(grid, 3, 1, 1) == grid).reshape(scores.shape) & (scores > 0.05)
    spread = detector.spread(features[peaks], boxes[peaks])
    detector.train()
    return probox.Detections(
        classes=CLASSES,
        image_ids=peaks.nonzero()[:, 0].numpy() + 1,
        boxes=boxes[peaks].double().clamp(0, SIDE - 1).numpy(),
        label_probs=(scores[peaks][:, None] * logits[peaks].softmax(1)).numpy(),
        covariances=spread.covariance.double().numpy() if probabilistic else None,
    )


def main() -> None:
    """Train and evaluate both stages, and write the detections."""
    parser = argparse.ArgumentParser(description="Train a small detector with pPDQ as its loss.")
    parser.add_argument("--steps", type=int, default=600, help="steps per stage [600]")
    parser.add_argument("--images", type=int, default=2000, help="training images [2000]")
    parser.add_argument("--test-images", type=int, default=300, help="test images [300]")
    parser.add_argument("--seed", type=int, default=0, help="random seed [0]")
    parser.add_argument("--out", default="found.json", help="file for the detections [found.json]")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    learned = draw_scenes(options.images, 2 * options.seed)  # YOURS
    unseen = draw_scenes(options.test_images, 2 * options.seed + 1)
    detector = Detector()
    for name, probabilistic, rate in (("L1, no covariances", False, 3e-3), ("pPDQ", True, 3e-3)):
        print(name)
        train(detector, learned, options.steps, rate, probabilistic=probabilistic, seed=options.seed)
        found = detect(detector, unseen, probabilistic=probabilistic)
        print(probox.evaluate(unseen.truth, found, label_threshold=0.3))
    write_detections(options.out, found, unseen.truth)
    print(f"{len(found)} detections written to {options.out}")


if __name__ == "__main__":
    main()
