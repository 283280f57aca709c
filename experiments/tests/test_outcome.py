"""What is said of where an experiment's numbers come from."""

from __future__ import annotations

from probox_experiments import EXPERIMENTS
from probox_experiments.experiment import parse_settings
from probox_experiments.outcome import Setting

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


def command(name: str, *texts: str, **setting: object) -> str:
    changes = parse_settings(texts, EXPERIMENTS)
    return Setting(changes=changes, typed=texts, **setting).provenance(BY_NAME[name]).command  # type: ignore[arg-type]


def test_a_command_names_what_its_numbers_depend_on() -> None:
    texts = ("fixed_variance=4", "times=1,2", "shifts=0,0.1")
    assert command("duplicates", *texts) == "probox experiment run duplicates --set fixed_variance=4 --set times=1,2"
    assert command("duplicates", presets=("reference", "paper")) == "probox experiment run duplicates"
    assert command("duplicates", presets=("paper", "challenge")).endswith("--preset paper --preset challenge")
    assert command("plane", seed=3, images=7, repeats=2) == "probox experiment run plane"
    asked = command("missed-coco", seed=3, images=7, repeats=2)
    assert asked == "probox experiment run missed-coco --images 7 --repeats 2 --seed 3"


def test_experiments_with_presets_of_their_own_claim_no_others() -> None:
    own = [name for name, experiment in BY_NAME.items() if experiment.own_presets]
    assert own == ["training", "training-scenes"]
    for name in own:
        assert command(name, "epsilon=1e-10", presets=("paper",)) == f"probox experiment run {name}"
