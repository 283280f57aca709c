"""Which images are worth a look: each choice against a plain sort of the images' numbers."""

from __future__ import annotations

import math

import pytest

from probox import Evaluation, InputError
from probox.analysis.image_ranking import CHOICES, choose_images, find_images


@pytest.mark.parametrize("choice", list(CHOICES))
def test_the_first_images_of_every_choice(results: dict[str, Evaluation], choice: str) -> None:
    result = results["unsure"]
    columns = result.per_image()
    rows = [{name: values[row].item() for name, values in columns.items()} for row in range(len(result.dataset))]
    key = {
        "worst": lambda row: row["PDQ"],
        "best": lambda row: -row["PDQ"],
        "false-positives": lambda row: -row["FP"],
        "missed": lambda row: -row["FN"],
        "crowded": lambda row: -(2 * row["TP"] + row["FP"] + row["FN"]),
    }[choice]
    assert not any(math.isnan(row["PDQ"]) for row in rows)
    expected = [row["image_id"] for row in sorted(rows, key=lambda row: (key(row), row["image_id"]))]
    assert choose_images(result, choice, 4) == expected[:4]


def test_images_go_by_id_or_name(results: dict[str, Evaluation]) -> None:
    result = results["unsure"]
    name = result.dataset.file_names[2]
    assert find_images(result, [str(result.dataset.image_ids[5]), name]) == result.dataset.image_ids[[5, 2]].tolist()
    with pytest.raises(InputError):
        find_images(result, ["nowhere.jpg"])
