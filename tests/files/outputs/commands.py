"""Every command that writes, in two versions whose output differs, and what they leave on the disk."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys
from pathlib import Path

MAIN = "import sys; from probox.cli import main; main(sys.argv[1:])"


@dataclasses.dataclass(frozen=True)
class Command:
    """A command line; `OUT` and `IN` stand for the output and the folder of inputs."""

    name: str
    out: str
    words: str
    before: str = ""
    """More words that make an earlier output which differs."""
    other: str = ""
    """Another command, or -c and Python code, that makes the earlier output."""
    inside: str = ""
    """Folders of the output in which files of the user's may lie; without any, one may lie beside it."""

    @property
    def mine(self) -> tuple[str, ...]:
        """Files of the user's that may lie there."""
        names = (f"{folder}/{name}" for folder in self.inside.split() for name in ("mine.txt", "notes.txt"))
        return tuple(names) or ("mine.txt",)

    def line(self, inputs: Path, folder: Path, *, earlier: bool = False) -> list[str]:
        """Return the words to run it with."""
        given = (self.other or f"{self.words} {self.before}") if earlier else self.words
        out = str(folder / self.out)
        return [word.replace("OUT", out).replace("IN", str(inputs)) for word in shlex.split(given)]


_EVALUATE = "evaluate IN/truth.json IN/deterministic.json"
_LESS = "--label-threshold 0.5"
_CALIBRATE = "calibrate fit IN/truth.json IN/probabilistic.json --target nll --label-method isotonic --method isotonic"
_DRAW = "draw IN/results/deterministic --images IN/images --label-text none --worst 1 --out OUT"
_REPORT = "report IN/results --images IN/images --out OUT"
_EARLIER_DEMO = "-c \"from probox.demo import make_demo; make_demo(images=2, seed=5).save('OUT')\""
_EXPERIMENT = "experiment run duplicates plane --out OUT"
_DETECT = "detect IN/ssd.onnx --classes IN/names.txt --images IN/photos --out OUT"
_CONVERT = "convert IN/probabilistic.json OUT --truth IN/truth.json"
_APPLY = "calibrate apply IN/calibration.json IN/probabilistic.json --out OUT"
_EARLIER_MERGE = "merge IN/parts/1/probabilistic IN/parts/2/probabilistic --out OUT"
_EARLIER_RESULTS = f"{_EVALUATE} IN/probabilistic.json {_LESS} --out OUT"
_DIAGNOSE = "diagnose IN/results --replicates 5 --out OUT"

COMMANDS = [
    Command("draw", "pictures", _DRAW, "--colours green-red", inside="pictures"),
    Command("plot", "plots", "plot IN/results/deterministic --out OUT", "--dark", inside="plots"),
    Command("report", "report", _REPORT, "--title Earlier", inside="report"),
    Command("report --embed", "page.html", f"{_REPORT} --embed", "--title Earlier"),
    Command("demo", "demo", "demo --save OUT", other=_EARLIER_DEMO, inside="demo"),
    Command("experiment", "experiments", _EXPERIMENT, "--preset paper", inside="experiments"),
    Command("detect", "found.json", _DETECT, "--max-detections 1"),
    Command("convert", "converted.json", _CONVERT, "--to coco"),
    Command("convert to Parquet", "a.parquet", "convert IN/truth.json OUT", other="convert IN/other/truth.json OUT"),
    Command("convert to shards", "set", "convert IN/truth.json OUT --shards 2",
            other="convert IN/other/truth.json OUT --shards 1"),
    Command("fuse", "fused.json", "fuse IN/truth.json IN/deterministic.json IN/probabilistic.json --out OUT",
            "--min-std 3"),
    Command("calibrate", "calibration.json", f"{_CALIBRATE} --out OUT", "--method constant"),
    Command("calibrate apply", "calibrated.json", _APPLY, other="convert IN/deterministic.json OUT"),
    Command("rank", "next.json", "rank IN/probabilistic.json --out OUT", "--top 1"),
    Command("evaluate", "results", f"{_EVALUATE} --out OUT", _LESS, inside="results/deterministic"),
    Command("evaluate two files", "results", f"{_EVALUATE} IN/probabilistic.json --out OUT", _LESS,
            inside="results results/deterministic"),
    Command("evaluate --csv", "tables", f"{_EVALUATE} --csv OUT", _LESS, inside="tables"),
    Command("join", "joined", "merge IN/parts/1/deterministic IN/parts/2/deterministic --out OUT",
            other=_EARLIER_MERGE, inside="joined"),
    Command("join two results", "joined", "merge IN/parts/1 IN/parts/2 --out OUT", other=_EARLIER_RESULTS,
            inside="joined"),
    Command("diagnose", "why", _DIAGNOSE, "--dark --seed 1", inside="why"),
]  # fmt: skip
"""`table` and `compare` write no files."""


def run(words: list[str], program: str = MAIN) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, timeout=300
    )


def tree(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder by name, but for what is kept for going on, and left-over places."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        aside = any(part.endswith((".part", ".partial")) or part == ".points" for part in Path(name).parts)
        if path.is_file() and not aside:
            found[name] = path.read_bytes()
    return found


def leftovers(folder: Path) -> list[str]:
    """Return the names of places in which output was made and that were not removed."""
    return [path.name for path in folder.rglob("*.part*")]
