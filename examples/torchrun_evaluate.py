"""Evaluate with torchrun: each process evaluates its own images, and the first merges the results.

    torchrun --standalone --nproc-per-node 2 examples/torchrun_evaluate.py TRUTH DETECTIONS [--out DIR]

Each process evaluates its part of the files. --loop runs a validation loop instead, in which each process evaluates
batches of its own images. The result is bit-identical to that of one process. Results are sent as bytes, so probox does
not depend on torch.distributed.

Requires torch, but no GPU: the processes communicate by gloo.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

import probox


def evaluate_files(asked: argparse.Namespace, threads: int) -> Any:
    """Evaluate the part of this process."""
    part = f"{dist.get_rank() + 1}/{dist.get_world_size()}"
    return probox.evaluate(asked.truth, asked.detections, part=part, keep=asked.keep, threads=threads)


def evaluate_batches(asked: argparse.Namespace, threads: int) -> Any:
    """Evaluate the images of this process in batches, as a validation loop does."""
    truth = probox.read_truth(asked.truth)
    model = Replay(asked.detections, truth)
    # A DistributedSampler repeats images to give all processes the same number, and merge rejects repeated images.
    own = truth.image_ids[dist.get_rank() :: dist.get_world_size()].tolist()
    evaluator = probox.Evaluator(truth.classes, threads=threads)
    for image_ids in DataLoader(own, batch_size=4):
        evaluator.update(truth.select_images(image_ids.tolist()), model(image_ids))
    return evaluator.result()


class Replay:
    """Replaces a model: returns the detections of a file."""

    def __init__(self, path: str, truth: probox.GroundTruth) -> None:
        self.found = probox.read_detections(path, truth)

    def __call__(self, image_ids: torch.Tensor) -> probox.Detections:
        wanted = torch.isin(torch.from_numpy(self.found.image_ids.copy()), image_ids)
        return self.found[wanted.numpy()]


def merge_on_first(result: Any) -> Any | None:
    """Send the result of this process to the first one, which returns the merged result; others return None."""
    first = dist.get_rank() == 0
    sent: list[bytes | None] | None = [None] * dist.get_world_size() if first else None
    dist.gather_object(result.to_bytes(), sent, dst=0)
    return probox.merge([probox.from_bytes(data) for data in sent]) if sent is not None else None


def main() -> None:
    """Evaluate in each process; merge, print and save in the first."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("truth")
    options.add_argument("detections")
    options.add_argument("--loop", action="store_true", help="run a validation loop instead of parts of files")
    options.add_argument("--keep", default="all", choices=("summary", "matches", "all"), help="data stored per part")
    options.add_argument("--out", help="save the merged result in this folder")
    asked = options.parse_args()

    dist.init_process_group("gloo")
    try:
        # The processes of a machine share its processors; by default each would use all of them.
        threads = max(1, len(os.sched_getaffinity(0)) // int(os.environ["LOCAL_WORLD_SIZE"]))
        own = evaluate_batches(asked, threads) if asked.loop else evaluate_files(asked, threads)
        result = merge_on_first(own)
        if result is not None:
            print(result)
            if asked.out:
                result.save(asked.out)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
