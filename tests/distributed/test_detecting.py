"""A detector over photos on a cluster: the same file, kept results, and processes that die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probox.notes import as_notes

pytest.importorskip("distributed")
pytest.importorskip("PIL.Image")

from probox import distributed as over
from probox.cli import main
from probox.detect import Options, detect_images, find_images
from probox.detect.factory import open_detector
from probox.distributed import ClusterLooking, Model
from probox.errors import InputError

OWN = '''
import os, signal
from pathlib import Path
import numpy as np
from probox.detect import Candidates, Traits

HERE = Path(__file__).parent


class Means:
    """Finds one box in each photo, as large as the photo is bright; some files tell it to misbehave."""

    batch, family = 2, Traits("means", ("cup", "dog"))

    @property
    def fingerprint(self):
        return str(os.getpid()) if (HERE / "differ").exists() else "means"

    @property
    def notes(self):
        return ("all is grey",) if (HERE / "odd").exists() else ()

    def candidates(self, images):
        (HERE / "opened" / str(os.getpid())).touch()
        return [self.one(image) for image in images]

    def one(self, image):
        height, width = image.shape[:2]
        if width == 67 and (HERE / "die").exists():
            (HERE / "die").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if width == 67 and (HERE / "fail").exists():
            from probox.errors import InputError
            raise InputError("sees nothing here", file="own.py", remedy="look elsewhere")
        share = image.mean() / 300
        return Candidates(np.array([[1.0, 1.0, share * width, share * height]]), np.array([[share, 1 - share]]))

    def sample(self, images, passes, image_ids):
        raise NotImplementedError


def make():
    return Means()
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, which one stands in, with a model and nine photos; one of them is none."""
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    for name in ("photos", "opened"):
        Path(name).mkdir()
    Path("own.py").write_text(OWN)
    random = np.random.default_rng(2)
    for number in range(1, 10):
        pixels = random.integers(0, 255, (40, 60 + number, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(f"photos/{number}.png")
    Path("photos/4.png").write_text("no photo")
    return tmp_path


MODEL = "python:own.py:make"
OPTIONS = Options(uncertainty="constant")


def alone(out: str) -> Any:
    return detect_images(open_detector(MODEL), find_images("photos"), out, OPTIONS)


def test_the_file_is_that_of_one_process(client: Any, place: Path) -> None:
    here = alone("here.coco.json")
    steps: list[tuple[int, int]] = []
    there = over.detect_images(
        MODEL, find_images("photos"), "there.coco.json", OPTIONS, client=client,
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    assert Path("there.coco.json").read_bytes() == Path("here.coco.json").read_bytes()
    assert (there.images, there.notes) == (9, here.notes)
    # Why a photo cannot be read depends on what else a process has imported: frameworks add readers of their own.
    for run in (here, there):
        assert [text.split(": ")[0] for text in run.skipped] == ["photos/4.png"]
    assert steps[0] == (0, 9)
    assert steps[-1] == (9, 9)
    assert len(list(Path("opened").iterdir())) >= 2  # one here, and one at least there
    assert not Path("there.coco.json.partial").exists()


RUN = """
import os, sys
from probox.cli import main
from probox.distributed import open_client

if __name__ == "__main__":
    with open_client("local:1") as client:  # which may start its worker again
        client.restart()
    assert "PYTHONSAFEPATH" not in os.environ
    main()
"""


@pytest.mark.slow
def test_modules_in_the_current_folder_do_not_replace_python_s_own(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One's own detector there is opened all the same."""
    program = tmp_path_factory.mktemp("elsewhere") / "run.py"
    program.write_text(RUN)
    for name in ("pickle", "json", "numpy", "distributed"):
        Path(f"{name}.py").write_text(f"open('ran-{name}', 'w')")
    words = ["detect", MODEL, "--images", "photos", "--out", "there.coco.json", "--uncertainty", "constant"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, program, *words, "--dask", "local:1"],
        env=environment, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert list(Path().glob("ran-*")) == []
    assert (done.returncode, "16 detections in 9 images" in done.stderr) == (0, True), done.stderr
    assert len(list(Path("opened").iterdir())) == 1  # by the worker


def test_graphs(client: Any, place: Path) -> None:
    graphs = pytest.importorskip("tests.detect.graphs", reason="needs onnx")
    pytest.importorskip("onnxruntime")
    graphs.small_ssd(Path("ssd.onnx"))
    Path("names.txt").write_text("cup\ndog\ncar\n")
    words = ["detect", "ssd.onnx", "--images", "photos", "--classes", "names.txt", "--score-threshold", "0.01"]
    for uncertainty in ("nms-clusters", "mc-dropout"):
        for name, more in (("here", []), ("there", ["--dask", client.scheduler.address])):
            with pytest.raises(SystemExit) as done:
                main([*words, "--uncertainty", uncertainty, "--passes", "3", "--out", f"{name}.coco.json", *more])
            assert not done.value.code
        assert Path("here.coco.json").read_bytes() == Path("there.coco.json").read_bytes()
        assert len(Path("here.coco.json").read_bytes()) > 10_000


def test_what_looks_odd_to_all_processes_is_said(client: Any, place: Path) -> None:
    Path("odd").touch()
    looking = ClusterLooking(client, Model.from_name(MODEL))
    run = detect_images(open_detector(MODEL), find_images("photos"), "there.json", OPTIONS, process=looking)
    assert run.notes == alone("here.json").notes == as_notes(["all is grey"])
    looking._notes["another process"] = ()  # which has seen nothing odd in its part of the images
    assert looking.notes == ()


def test_a_batch_whose_process_dies_runs_again(client: Any, place: Path) -> None:
    alone("here.json")
    Path("die").touch()
    over.detect_images(MODEL, find_images("photos"), "there.json", OPTIONS, client=client)
    assert not Path("die").exists()
    assert Path("there.json").read_bytes() == Path("here.json").read_bytes()


def test_an_interrupted_run_goes_on_with_and_without_a_cluster(client: Any, place: Path) -> None:
    alone("here.json")
    Path("fail").touch()
    with pytest.raises(InputError) as told:
        over.detect_images(MODEL, find_images("photos"), "there.json", OPTIONS, client=client)
    assert str(told.value) == "own.py: sees nothing here; look elsewhere"
    assert len(list(Path("there.json.partial").glob("*.npz"))) == 6  # all but the batch of 7 and 8, and 4
    with pytest.raises(InputError):
        alone("there.json")
    Path("fail").unlink()
    run = over.detect_images(MODEL, find_images("photos"), "there.json", OPTIONS, client=client)
    assert run.resumed == 5  # a batch with a photo that can't be read is looked at again
    assert Path("there.json").read_bytes() == Path("here.json").read_bytes()


def test_another_model_in_its_place(client: Any, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("differ").touch()
    with pytest.raises(SystemExit) as done:
        main(
            ["detect", MODEL, "--images", "photos", "--out", "there.coco.json", "--dask", client.scheduler.address]
        )  # fmt: skip
    assert done.value.code == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        f"probox: {place.resolve() / 'own.py'}: a Dask worker has another model file at this path; "
        "give all workers the same files and package versions"
    )
    assert not Path("there.coco.json").exists()


def test_a_changed_model_is_opened_anew(client: Any, place: Path) -> None:
    over.detect_images(MODEL, find_images("photos"), "one.json", OPTIONS, client=client)
    Path("own.py").write_text(OWN.replace("/ 300", "/ 290") + "# changed\n")
    over.detect_images(MODEL, find_images("photos"), "two.json", OPTIONS, client=client)
    alone("here.json")
    assert Path("two.json").read_bytes() == Path("here.json").read_bytes() != Path("one.json").read_bytes()


@pytest.mark.parametrize("name", ["workers", "dropuot"])
def test_an_unknown_option_is_refused_before_any_work(name: str, place: Path) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        Model.from_name(f"python:{place / 'own.py'}:make", **{name: 2})
