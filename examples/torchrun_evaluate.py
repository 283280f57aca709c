"""One evaluation by the processes of torchrun: each takes its own images, the first joins the results and prints them.

    torchrun --standalone --nproc-per-node 2 examples/torchrun_evaluate.py TRUTH FOUND [--out DIR]

Each process evaluates its part of the files. With --loop it is a validation loop instead: each process is fed with
batches of its own images. Both print what one process would, to the bit. probox itself knows nothing of
torch.distributed: a result is sent as bytes, by whatever the training already has.

Needs torch. No GPU: the processes talk by gloo.
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
    """Return what this process makes of its part of two files."""
    part = f"{dist.get_rank() + 1}/{dist.get_world_size()}"
    return probox.evaluate(asked.truth, asked.found, part=part, keep=asked.keep, threads=threads)


def evaluate_batches(asked: argparse.Namespace, threads: int) -> Any:
    """Return what this process makes of its own images, a batch at a time, as a validation loop does."""
    truth = probox.read_truth(asked.truth)
    model = Replay(asked.found, truth)
    # Each image in one process: a DistributedSampler repeats some to make shares equal, and the join refuses those.
    own = truth.image_ids[dist.get_rank() :: dist.get_world_size()].tolist()
    evaluator = probox.Evaluator(truth.classes, threads=threads)
    for image_ids in DataLoader(own, batch_size=4):
        evaluator.update(truth.select_images(image_ids.tolist()), model(image_ids))
    return evaluator.result()


class Replay:
    """Stands where a model would: it says of each image what a file of detections says."""

    def __init__(self, path: str, truth: probox.GroundTruth) -> None:
        self.found = probox.read_detections(path, truth)

    def __call__(self, image_ids: torch.Tensor) -> probox.Detections:
        wanted = torch.isin(torch.from_numpy(self.found.image_ids.copy()), image_ids)
        return self.found[wanted.numpy()]


def join_on_first(result: Any) -> Any | None:
    """Send this process's result to the first one, which returns them all as one; the others return None."""
    first = dist.get_rank() == 0
    sent: list[bytes | None] | None = [None] * dist.get_world_size() if first else None
    dist.gather_object(result.to_bytes(), sent, dst=0)
    return probox.merge([probox.from_bytes(data) for data in sent]) if sent is not None else None


def main() -> None:
    """Evaluate in each process; join, print and keep in the first."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("truth")
    options.add_argument("found")
    options.add_argument("--loop", action="store_true", help="a validation loop instead of parts of files")
    options.add_argument("--keep", default="all", choices=("summary", "matches", "all"), help="what a part keeps")
    options.add_argument("--out", help="keep the joined result in this folder")
    asked = options.parse_args()

    dist.init_process_group("gloo")
    try:
        # The processes of a machine share its processors; each would take all of them otherwise.
        threads = max(1, len(os.sched_getaffinity(0)) // int(os.environ["LOCAL_WORLD_SIZE"]))
        own = evaluate_batches(asked, threads) if asked.loop else evaluate_files(asked, threads)
        result = join_on_first(own)
        if result is not None:
            print(result)
            if asked.out:
                result.save(asked.out)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
