"""What a user has put somewhere is neither removed nor written over."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from tests.files.outputs.commands import MAIN, tree

from probox.cli import main
from probox.files.output import output_folder

Run = Callable[..., tuple[int, str]]
Refused = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command and returns its status and what it said."""

    def run_command(*words: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as done:
            main([str(word) for word in words])
        return int(done.value.code or 0), capsys.readouterr().err

    return run_command


@pytest.fixture
def refused(run: Run) -> Refused:
    """Return a function that runs a command that must fail with one line, and returns the line."""

    def run_refused(*words: object) -> str:
        status, said = run(*words)
        assert (status, said.count("\n")) == (1, 1), said
        return said

    return run_refused


class TestReport:
    def test_folders_of_the_users_are_no_reports(
        self, run: Run, refused: Refused, inputs: Path, tmp_path: Path
    ) -> None:
        project = tmp_path / "proj"
        for name in ("photos", "data"):
            (project / name).mkdir(parents=True)
            (project / name / "mine.jpg").write_bytes(b"mine")
        assert run("report", inputs / "results", "--embed", "--out", project / "index.html")[0] == 0
        before = tree(project)
        assert "is not empty" in refused("report", inputs / "results", "--out", project)
        assert tree(project) == before

    def test_a_mistake_leaves_the_earlier_report(
        self, run: Run, refused: Refused, inputs: Path, tmp_path: Path
    ) -> None:
        words = ("report", inputs / "results", "--out", tmp_path / "r", "--images")
        assert run(*words, inputs / "images")[0] == 0
        before = tree(tmp_path)
        assert "is not a folder" in refused(*words, inputs / "imagse")
        assert tree(tmp_path) == before
        assert run(*words, tmp_path / "r" / "photos")[0] == 0  # not even from its own photos

    def test_what_is_beside_it_stays(self, run: Run, inputs: Path, tmp_path: Path) -> None:
        out = tmp_path / "r"
        words = ("report", inputs / "results", "--out", out)
        assert run(*words, "--images", inputs / "images")[0] == 0
        (out / "photos" / "mine.jpg").write_bytes(b"mine")
        (out / "notes.txt").write_text("mine")
        (out / "empty").mkdir()
        assert run(*words)[0] == 0
        assert [path.name for path in (out / "photos").iterdir()] == ["mine.jpg"]
        assert (out / "notes.txt").read_text() == "mine"
        assert (out / "empty").is_dir()
        assert not (out / "thumbs").exists()

    def test_a_changed_page_stays(self, run: Run, refused: Refused, inputs: Path, tmp_path: Path) -> None:
        words = ("report", inputs / "results", "--out", tmp_path / "r")
        assert run(*words)[0] == 0
        page = tmp_path / "r" / "index.html"
        page.write_text(page.read_text() + "<!-- my remark -->")
        before = tree(tmp_path)
        assert "index.html: was changed since" in refused(*words)
        assert tree(tmp_path) == before

    def test_another_page_of_this_name_stays(self, run: Run, refused: Refused, inputs: Path, tmp_path: Path) -> None:
        page = tmp_path / "index.html"
        page.write_text("<p>my home page")
        words = ("report", inputs / "results", "--embed", "--out", page)
        assert "does not contain a report" in refused(*words)
        assert page.read_text() == "<p>my home page"
        page.unlink()
        assert run(*words)[0] == 0
        assert run(*words)[0] == 0

    def test_links(self, run: Run, refused: Refused, inputs: Path, tmp_path: Path) -> None:
        """A link to a folder is followed, as it was named; links inside are not."""
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        words = ("report", inputs / "results", "--images", inputs / "images", "--out", tmp_path / "link")
        assert run(*words)[0] == 0
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "index.html").is_file()
        shutil.move(tmp_path / "real" / "photos", tmp_path / "elsewhere")
        (tmp_path / "real" / "photos").symlink_to(tmp_path / "elsewhere")
        before = tree(tmp_path)
        assert "photos: is in the way" in refused(*words)
        assert tree(tmp_path) == before
        assert run("report", inputs / "results", "--out", tmp_path / "link")[0] == 0
        assert len(list((tmp_path / "elsewhere").iterdir())) == 2
        (tmp_path / "nowhere").symlink_to("missing")
        said = refused("report", inputs / "results", "--out", tmp_path / "nowhere")
        assert "missing target" in said

    def test_a_list_from_elsewhere_leads_nowhere(
        self, run: Run, refused: Refused, inputs: Path, tmp_path: Path
    ) -> None:
        words = ("report", inputs / "results", "--out", tmp_path / "r")
        assert run(*words)[0] == 0
        mine = tmp_path / "mine.txt"
        shutil.copy(tmp_path / "r" / "index.html", mine)
        listing = tmp_path / "r" / ".probox.json"
        content = json.loads(listing.read_text())
        content["files"]["../mine.txt"] = content["files"]["index.html"]
        listing.write_text(json.dumps(content))
        assert ".probox.json: is not the list" in refused(*words)
        assert mine.exists()


def test_photos_are_not_drawn_over(run: Run, refused: Refused, inputs: Path, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in (inputs / "images").iterdir():
        Image.open(path).save(photos / f"{path.stem}.png")
    before = tree(tmp_path)
    words = (
        "draw",
        inputs / "results" / "deterministic",
        "--images",
        photos,
        "--worst",
        1,
        "--label-text",
        "none",
        "--out",
    )
    said = refused(*words, photos)
    assert "did not write it; choose another folder" in said
    assert tree(tmp_path) == before
    assert run(*words, tmp_path / "p")[0] == 0
    assert run(*words, tmp_path / "p")[0] == 0  # its own pictures it may replace


def test_commands_do_not_replace_each_others_files(run: Run, refused: Refused, inputs: Path, tmp_path: Path) -> None:
    assert run("report", inputs / "results", "--out", tmp_path / "r")[0] == 0
    before = tree(tmp_path)
    (tmp_path / "r" / "truth.json").write_text("mine")
    assert "truth.json" in refused("demo", "--save", tmp_path / "r")
    (tmp_path / "r" / "truth.json").unlink()
    assert tree(tmp_path) == before


def test_a_second_picture_joins_the_first(run: Run, inputs: Path, tmp_path: Path) -> None:
    for image in (1, 2):
        words = (
            "draw",
            inputs / "results" / "deterministic",
            "--image",
            image,
            "--label-text",
            "none",
            "--out",
            tmp_path,
        )
        assert run(*words)[0] == 0
    assert set(tree(tmp_path)) == {"scene-01.png", "scene-02.png", ".probox.json"}


@pytest.mark.parametrize("name", ["evaluation.json", "tables.npz"])
def test_evaluations_replace_nothing_else(
    run: Run, refused: Refused, inputs: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "deterministic" / name
    mine.parent.mkdir()
    mine.write_text("mine")
    words = ("evaluate", inputs / "truth.json", inputs / "deterministic.json", "--out", tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("probox.cli.scoring.Scoring.evaluate", None)  # it is refused before any work is done
        assert f"{name}: exists and does not contain an evaluation" in refused(*words)
    assert tree(tmp_path) == {f"deterministic/{name}": b"mine"}
    mine.unlink()
    assert run(*words)[0] == 0
    assert run(*words)[0] == 0


WRITER = """
import os
made = 0
try:
    while made < 900:
        with open(f"log-{made}.new", "x"):
            made += 1
        if made == 10:
            print("begun", flush=True)
except FileNotFoundError:  # the folder was replaced
    pass
print(made)
"""


class TestResults:
    """Folders of results are replaced as a whole, or file by file where something else is in them, which stays."""

    def words(self, inputs: Path, out: Path, *more: object) -> tuple[object, ...]:
        return (
            "evaluate",
            inputs / "truth.json",
            inputs / "deterministic.json",
            inputs / "probabilistic.json",
            "--out",
            out,
            *more,
        )

    def test_other_files_are_the_same_files(self, run: Run, inputs: Path, tmp_path: Path) -> None:
        out = tmp_path / "results"
        assert run(*self.words(inputs, out))[0] == 0
        shutil.copytree(out / "deterministic", out / "earlier")
        (out / "earlier").chmod(0o750)
        os.utime(out / "earlier", (1e9, 1e9))
        for path in (out / "mine.txt", out / "deterministic" / "mine.txt"):
            path.write_text("mine")
        (out / "link").symlink_to("mine.txt")
        (out / "folder").symlink_to(tmp_path)
        out.chmod(0o770)

        def found() -> dict[str, tuple[int, int]]:
            return {path.as_posix(): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in out.rglob("*")}

        before = found()
        assert run(*self.words(inputs, out))[0] == 0
        after = found()
        assert before.keys() == after.keys()
        for name in ("mine.txt", "deterministic/mine.txt", "earlier/tables.npz", "link", "folder"):
            assert before[f"{out}/{name}"] == after[f"{out}/{name}"]
        assert (out / "folder").readlink() == tmp_path
        assert [oct((out / name).stat().st_mode)[-3:] for name in ("", "earlier")] == ["770", "750"]
        assert (out / "earlier").stat().st_mtime == 1e9

    @pytest.mark.parametrize("reason", ["nothing else", "file of the user", "folder of the user", "current folder"])
    def test_in_one_step_or_one_by_one(
        self, run: Run, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
    ) -> None:
        out = tmp_path / "results"
        assert run(*self.words(inputs, out))[0] == 0
        if reason == "file of the user":
            (out / "mine.txt").write_text("mine")
        elif reason == "folder of the user":  # a program may run there
            (out / "mine").mkdir()
        elif reason == "current folder":
            monkeypatch.chdir(out)
        out.chmod(0o770)
        before, number = tree(out), out.stat().st_ino
        assert run(*self.words(inputs, out, "--label-threshold", 0.5))[0] == 0
        assert (out.stat().st_ino == number) == (reason != "nothing else" or not sys.platform.startswith("linux"))
        after = tree(out)
        assert before.keys() == after.keys()
        assert {name for name in before if before[name] == after[name]} == before.keys() & {"mine.txt"}
        assert (out / "mine").is_dir() == (reason == "folder of the user")
        assert oct(out.stat().st_mode)[-3:] == "770"

    @pytest.mark.parametrize("kind", ["link", "link that leads nowhere", "pipe"])
    def test_links_and_pipes_in_place_of_a_file_stay(
        self, refused: Refused, inputs: Path, tmp_path: Path, kind: str
    ) -> None:
        place = tmp_path / "results" / "deterministic" / "tables.npz"
        place.parent.mkdir(parents=True)
        (tmp_path / "mine.txt").write_text("mine")
        if kind == "pipe":
            os.mkfifo(place)
        else:
            place.symlink_to(tmp_path / ("mine.txt" if kind == "link" else "missing"))
        said = refused(*self.words(inputs, tmp_path / "results"))
        assert ("is a link" in said) == (kind != "pipe")
        assert place.is_symlink() or place.is_fifo()
        assert (tmp_path / "mine.txt").read_text() == "mine"

    def test_the_group_of_the_folder_is_that_of_new_files(self, run: Run, inputs: Path, tmp_path: Path) -> None:
        out = tmp_path / "results"
        out.mkdir()
        try:
            os.chown(out, -1, 4242)
        except PermissionError:
            pytest.skip("only root may give a folder any group")
        out.chmod(0o2775)
        for _ in range(2):
            assert run(*self.words(inputs, out))[0] == 0
            assert {path.stat().st_gid for path in out.rglob("*")} == {4242}

    def test_names_that_are_not_utf8(self, run: Run, inputs: Path, tmp_path: Path) -> None:
        for option in ("--out", "--csv"):
            words = [*self.words(inputs, tmp_path)[:-2], option, tmp_path / f"{option}\udcff"]
            assert run(*words)[0] == 0

    def test_a_program_that_runs_in_the_folder_loses_nothing(self, inputs: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        with output_folder(out, "draw") as folder:
            folder.write("picture.png", b"old")
        writer = subprocess.Popen([sys.executable, "-c", WRITER], cwd=out, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "begun\n"
        with output_folder(out, "draw") as folder:
            folder.write("picture.png", b"new")
        made = int(writer.communicate(timeout=60)[0])
        assert made >= 10
        assert len(list(out.glob("log-*"))) == made
        assert (out / "picture.png").read_bytes() == b"new"
        assert [path.name for path in tmp_path.iterdir()] == ["out"]

    def test_links_to_results_are_followed(self, run: Run, inputs: Path, tmp_path: Path) -> None:
        out = tmp_path / "results"
        out.mkdir()
        (tmp_path / "elsewhere").mkdir()
        (out / "deterministic").symlink_to("../elsewhere")
        (tmp_path / "link").symlink_to("results")
        assert run(*self.words(inputs, tmp_path / "link"))[0] == 0
        assert (out / "deterministic").is_symlink()
        assert (tmp_path / "link").is_symlink()
        assert set(tree(tmp_path / "elsewhere")) == {"evaluation.json", "tables.npz"}


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_list_that_is_no_file_is_not_waited_for(inputs: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "tables"
    out.mkdir()
    if kind == "pipe":
        os.mkfifo(out / ".probox.json")
    elif os.geteuid() == 0:
        os.mknod(out / ".probox.json", stat.S_IFCHR | 0o600, os.makedev(1, 5))  # as /dev/zero, which never ends
    else:
        pytest.skip("only root can make a device")
    words = ["evaluate", str(inputs / "truth.json"), str(inputs / "deterministic.json"), "--csv", str(out)]
    done = subprocess.run([sys.executable, "-c", MAIN, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert ".probox.json: is not the list of files that probox keeps under this name" in done.stderr


class TestNamedFiles:
    def test_inputs_are_never_replaced(self, refused: Refused, inputs: Path, tmp_path: Path) -> None:
        for name in ("truth.json", "deterministic.json", "probabilistic.json", "ssd.onnx", "names.txt"):
            shutil.copy(inputs / name, tmp_path)
        before = tree(tmp_path)
        truth, deterministic, probabilistic = (
            tmp_path / f"{name}.json" for name in ("truth", "deterministic", "probabilistic")
        )
        os.link(deterministic, tmp_path / "same.json")
        for out in (truth, deterministic, tmp_path / "same.json"):
            refused("convert", deterministic, out, "--truth", truth)
            refused("fuse", truth, deterministic, probabilistic, "--out", out)
        detect = ("detect", tmp_path / "ssd.onnx", "--images", inputs / "photos", "--classes", tmp_path / "names.txt")
        masks = ("--uncertainty", "mc-dropout", "--passes", 1, "--dropout-layers", "box")
        assert "would replace" in refused(*detect, *masks, "--out", tmp_path / "x.json", "--save-graph",
                                          tmp_path / "ssd.onnx")  # fmt: skip
        (tmp_path / "same.json").unlink()
        assert tree(tmp_path) == before

    @pytest.mark.parametrize("name", ["out.json", "out.json.gz", "out.parquet"])
    def test_other_content_is_not_replaced(
        self, run: Run, refused: Refused, inputs: Path, tmp_path: Path, name: str
    ) -> None:
        out = tmp_path / name
        words = (
            "fuse",
            inputs / "truth.json",
            inputs / "deterministic.json",
            inputs / "probabilistic.json",
            "--out",
            out,
        )
        for content in (b'{"images": [], "annotations": []}', b"my words", b"PAR1 not really PAR1", b'[{"name": 1}]'):
            out.write_bytes(content)
            assert "exists and does not contain detections" in refused(*words)
            assert out.read_bytes() == content
        many = {"classes": ["cup"], "img_names": [f"{n:012d}.jpg" for n in range(9000)], "detections": []}
        for content in (b"", b"[\n]\n", json.dumps(many).encode(), b'[{"image_id": 1}]'):
            if name != "out.parquet" or not content:
                out.write_bytes(content)
                assert run(*words)[0] == 0
        assert run(*words)[0] == 0

    def test_truth_in_parquet_is_not_replaced_by_detections(
        self, run: Run, refused: Refused, inputs: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "a.parquet"
        assert run("convert", inputs / "truth.json", out)[0] == 0
        assert run("convert", inputs / "truth.json", out)[0] == 0
        before = out.read_bytes()
        words = ("convert", inputs / "deterministic.json", out, "--truth", inputs / "truth.json")
        assert "does not contain detections in Parquet" in refused(*words)
        assert out.read_bytes() == before

    def test_links_and_devices_are_not_written_through(self, refused: Refused, inputs: Path, tmp_path: Path) -> None:
        (tmp_path / "real.json").write_text("[]")
        (tmp_path / "link.json").symlink_to("real.json")
        os.mkfifo(tmp_path / "pipe.json")
        for name, reason in (("link.json", "is a link"), ("pipe.json", "no ordinary file")):
            words = ("convert", inputs / "deterministic.json", tmp_path / name, "--truth", inputs / "truth.json")
            assert reason in refused(*words)
        assert (tmp_path / "real.json").read_text() == "[]"
        assert (tmp_path / "pipe.json").is_fifo()

    def test_a_graph_is_replaced_by_its_like_only(
        self, run: Run, refused: Refused, inputs: Path, tmp_path: Path
    ) -> None:
        graph = tmp_path / "masked.onnx"
        words = (
            "detect", inputs / "ssd.onnx", "--images", inputs / "photos", "--classes", inputs / "names.txt",
            "--out", tmp_path / "x.json", "--uncertainty", "mc-dropout", "--passes", 1, "--dropout-layers", "box",
            "--save-graph", graph,
        )  # fmt: skip
        shutil.copy(inputs / "ssd.onnx", graph)
        assert "does not contain a graph with masks" in refused(*words)
        assert graph.read_bytes() == (inputs / "ssd.onnx").read_bytes()
        assert not (tmp_path / "x.json").exists()
        graph.unlink()
        assert run(*words)[0] == 0
        assert run(*words)[0] == 0
