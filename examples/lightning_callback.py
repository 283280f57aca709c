"""Log PDQ in every epoch of a Lightning training, with a small detector of coloured squares.

    python examples/lightning_callback.py

Requires lightning, which installs torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import probox
from probox.adapters import lightning_callback

CLASSES = ("red", "blue")
SIDE = 64


def make_images(count: int, seed: int) -> list[tuple[Any, dict[str, Any]]]:
    """Return images with one square each, and targets in torchvision's format: labels begin at 1."""
    import torch

    rng = np.random.default_rng(seed)
    images = []
    for number in range(count):
        pixels = rng.integers(90, 140, (SIDE, SIDE, 3), dtype=np.uint8)
        label, size = int(rng.integers(1, 3)), int(rng.integers(20, 40))
        x, y = (int(corner) for corner in rng.integers(0, SIDE - size, 2))
        pixels[y : y + size, x : x + size] = (220, 30, 30) if label == 1 else (30, 30, 220)
        target = {
            "boxes": torch.tensor([[x, y, x + size, y + size]], dtype=torch.float32),
            "labels": torch.tensor([label]),
            "image_id": torch.tensor([1000 * seed + number]),
            "image_size": (SIDE, SIDE),
        }
        images.append((torch.from_numpy(pixels).permute(2, 0, 1).float() / 255, target))
    return images


def make_module() -> Any:
    """Return a module that detects one square per image and predicts the variances of its edges."""
    import lightning
    import torch

    class Squares(lightning.LightningModule):
        """Predicts one box, probabilities of classes and background, and a variance per edge."""

        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 5, 4), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 5, 3), torch.nn.ReLU(),
                torch.nn.Flatten(), torch.nn.LazyLinear(4 + 4 + 1 + len(CLASSES)),
            )  # fmt: skip
            self.body(torch.zeros(1, 3, SIDE, SIDE))

        def forward(self, images: Any) -> tuple[Any, Any, Any]:
            edges, log_var, logits = self.body(images).split([4, 4, 1 + len(CLASSES)], dim=1)
            # Boxes start around the middle half of the image, with a std of 7 pixels.
            first, second = (0.25 + edges[:, :2] / 4) * SIDE, (0.75 + edges[:, 2:] / 4) * SIDE
            boxes = torch.cat([torch.minimum(first, second), torch.maximum(first, second)], dim=1)
            return boxes, (4 + log_var).clamp(-3, 8), logits

        def training_step(self, batch: Any, index: int) -> Any:
            images, targets = batch
            boxes, log_var, logits = self(images)
            wanted = torch.cat([target["boxes"] for target in targets])
            labels = torch.cat([target["labels"] for target in targets])
            unlikely = ((boxes - wanted) ** 2 / log_var.exp() + log_var).mean() / 2
            return unlikely + torch.nn.functional.cross_entropy(logits, labels)

        def validation_step(self, batch: Any, index: int) -> dict[str, Any]:
            images, targets = batch
            boxes, log_var, logits = self(images)
            probs = logits.softmax(dim=1)
            preds = [
                {
                    "boxes": box[None],
                    "label_probs": prob[None],
                    "covariances": torch.diag(var)[None],
                }
                for box, prob, var in zip(boxes, probs, log_var.exp(), strict=True)
            ]
            return {"preds": preds, "target": targets}

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=5e-3)

    return Squares()


def train(epochs: int = 2, *, callback: Any = None, **options: Any) -> tuple[Any, Any]:
    """Train for a few epochs; return the trainer and the callback."""
    import lightning
    import torch

    torch.manual_seed(0)
    loaders = [
        torch.utils.data.DataLoader(make_images(count, seed), batch_size=8, collate_fn=collate)
        for count, seed in ((64, 1), (12, 2))
    ]
    callback = callback or lightning_callback(probox.PDQ(("background", *CLASSES)))
    settings = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(max_epochs=epochs, callbacks=[callback], **(settings | options))
    trainer.fit(make_module(), *loaders)
    return trainer, callback


def collate(batch: list[tuple[Any, Any]]) -> tuple[Any, list[Any]]:
    """Return images as one tensor, and the list of their targets."""
    import torch

    images, targets = zip(*batch, strict=True)
    return torch.stack(images), list(targets)


def main() -> None:
    trainer, callback = train(epochs=20)
    print(f"val_PDQ {float(trainer.callback_metrics['val_PDQ']):.4f}")
    print(callback.results[0])


if __name__ == "__main__":
    main()
