"""What `import probox` and the first calls load, and that names loaded late are the ones that are told."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import probox
from probox.cli import main

HEAVY = {"scipy", "matplotlib", "PIL", "pyarrow", "onnx", "onnxruntime", "torch", "click", "rich"}

USE = """
truth = probox.GroundTruth.from_boxes(["cup"], {7: (64, 48)}, [7], [[10, 20, 40, 40]], [0])
found = probox.Detections(classes=["cup"], image_ids=[7], boxes=[[11, 19, 41, 40]], label_probs=[[0.9]])
str(probox.evaluate(truth, found))
"""


def loaded_after(code: str) -> set[str]:
    """Return the packages that a fresh process has loaded once it ran this."""
    code += "\nimport sys; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert not loaded_after("import probox") & (HEAVY | {"numpy"})


def test_all_public_names_need_only_numpy() -> None:
    assert not loaded_after("from probox import *") & HEAVY


def test_evaluating_needs_only_numpy() -> None:
    loaded = loaded_after("import probox" + USE)
    assert "numpy" in loaded
    assert not loaded & HEAVY


def test_help_does_without_numpy() -> None:
    loaded = loaded_after("from click.testing import CliRunner; from probox.cli import cli\nCliRunner().invoke(cli)")
    assert "click" in loaded
    assert not loaded & (HEAVY - {"click"} | {"numpy"})


NOT_FOR_JSON = HEAVY - {"click"} | {"asyncio", "html", "importlib.metadata", "numpy.ma", "pandas", "statistics", "yaml"}


def run_command(*words: object) -> tuple[str, set[str]]:
    """Return what a command prints, and the modules that it imports and NumPy does not."""
    code = (
        f"import sys, numpy; before = set(sys.modules); from probox.cli import main\ntry: main({[*map(str, words)]!r})"
    )
    code += "\nexcept SystemExit as done: print('ended', done.code)\nprint(*{*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    *told, ended, loaded = done.stdout.splitlines()
    assert ended == "ended 0"
    assert "click" in loaded.split()
    return "\n".join(told), set(loaded.split())


def test_json_loads_nothing_that_is_for_people(demo_files: Path) -> None:
    told, loaded = run_command("evaluate", "--json", demo_files / "truth.json", demo_files / "probabilistic.json")
    assert json.loads(told)["summary"]["PDQ"] > 0
    assert not loaded & NOT_FOR_JSON


OTHER_FORMATS = {
    f"probox.formats.{name}" for name in ("kitti", "open_images", "parquet", "rvc1_detections", "rvc1_truth")
}
OTHER_FORMATS |= {"probox.formats.voc", "probox.formats.yolo", "probox.files.photos"}
OTHER_METRICS = {"probox.measures.matched", "probox.measures.pmb_nll", "probox.measures.scoring"}
KEEPING = {f"probox.evaluation.{name}" for name in ("archive", "box_columns", "kept", "merge", "storage")}
STANDARD_LIBRARY = {
    "concurrent.futures",
    "gzip",
    "hashlib",
    "importlib.metadata",
    "json",
    "logging",
    "shutil",
    "zipfile",
}


def test_coco_files_load_nothing_of_other_formats_and_metrics(tmp_path: Path) -> None:
    box = {"image_id": 1, "category_id": 1, "bbox": [5, 5, 30, 20]}
    images, categories = [{"id": 1, "width": 64, "height": 48}], [{"id": 1, "name": "cup"}]
    (tmp_path / "truth.json").write_text(
        json.dumps({"images": images, "categories": categories, "annotations": [{**box, "id": 1, "area": 600}]})
    )
    (tmp_path / "found.json").write_text(json.dumps([box | {"score": 0.5}]))
    told, loaded = run_command("evaluate", tmp_path / "truth.json", tmp_path / "found.json")
    assert "moLRP" in told
    assert not loaded & (HEAVY - {"click"} | OTHER_FORMATS | OTHER_METRICS | KEEPING | STANDARD_LIBRARY)
    _, loaded = run_command("evaluate", tmp_path / "truth.json", tmp_path / "found.json", "--measures", "nll")
    assert loaded >= OTHER_METRICS
    assert all(map(find_spec, OTHER_FORMATS | KEEPING | STANDARD_LIBRARY))


def test_the_command_line_leaves_the_search_for_cycles_as_it_was() -> None:
    before = gc.get_threshold()
    with pytest.raises(SystemExit):
        main(["--help"])
    assert gc.get_threshold() == before


def test_every_public_name_is_there() -> None:
    for name in probox.__all__:
        assert getattr(probox, name) is not None
        assert name in dir(probox)


def test_a_star_import_takes_names_and_no_subpackages() -> None:
    assert "evaluate" in probox.__all__
    assert not {"torch", "plots"} & set(probox.__all__)


MISTAKES = {
    'probox.evalute("a", "b")': "attr-defined",
    "probox.plotss": "attr-defined",
    "result.plot.threshlods()": "attr-defined",
    "result.plot.thresholds(drak=True)": "call-arg",
    "result.intervals(levle=0.9)": "call-arg",
    "result.intervals()['PDQ'].lo": "attr-defined",
    "result.diagnose().no_such_thing": "attr-defined",
    "result.confusion().matrx": "attr-defined",
    "result.best_threshold(0.5)": "arg-type",
}


def test_type_checkers_see_misspelled_names(tmp_path: Path) -> None:
    header = 'import probox\n\nresult = probox.evaluate("truth.json", "detections.json")\n'
    right = [
        "probox.evaluate",
        "probox.plots.Plots",
        "result.plot.thresholds(dark=True)",
        "result.intervals(level=0.9)",
    ]
    (tmp_path / "mistakes.py").write_text(header + "\n".join([*right, *MISTAKES]) + "\n")
    check = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", "mistakes.py"]
    told = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()
    first = header.count("\n") + len(right) + 1
    errors = [line for line in told if ": error: " in line]
    assert [line.split(":")[1] for line in errors] == [str(first + place) for place in range(len(MISTAKES))], told
    assert [line.rsplit("[", 1)[1] for line in errors] == [f"{code}]" for code in MISTAKES.values()]


def test_packages_are_imported_on_first_use() -> None:
    code = "import probox; assert probox.explorer.write_report"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert probox.plots is import_module("probox.plots")


@pytest.mark.parametrize("name", ["no_such_room", "_private"])
def test_what_is_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"probox.*{name}"):
        getattr(probox, name)
