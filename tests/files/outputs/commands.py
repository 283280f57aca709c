"""Every command that writes, in two versions whose output differs, and what they leave on the disk."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

MAIN = "import sys; from probox.cli import main; main(sys.argv[1:])"


@dataclasses.dataclass(frozen=True)
class Command:
    """A command line; `OUT` and `IN` stand for the output and the folder of inputs."""

    name: str
    out: str
    words: tuple[str, ...]
    before: tuple[str, ...] = ()
    """More words that make an earlier output which differs."""
    slow: bool = False

    def line(self, inputs: Path, folder: Path, *, earlier: bool = False) -> list[str]:
        """Return the words to run it with."""
        given = (*self.words, *(self.before if earlier else ()))
        out = str(folder / self.out)
        return [word.replace("OUT", out).replace("IN", str(inputs)) for word in given]


COMMANDS = [
    Command(
        "draw",
        "pictures",
        ("draw", "IN/results/sure", "--images", "IN/images", "--labels", "none", "--worst", "1", "--out", "OUT"),
        ("--colours", "green-red"),
        slow=True,
    ),
    Command("plot", "plots", ("plot", "IN/results", "--out", "OUT"), ("--dark",), slow=True),
    Command(
        "report",
        "report",
        ("report", "IN/results", "--images", "IN/images", "--out", "OUT"),
        ("--title", "Earlier"),
    ),
    Command(
        "report --embed",
        "page.html",
        ("report", "IN/results", "--images", "IN/images", "--embed", "--out", "OUT"),
        ("--title", "Earlier"),
    ),
    Command("demo", "demo", ("demo", "--save", "OUT"), slow=True),
    Command("experiment", "experiments", ("experiment", "run", "duplicates", "plane", "--out", "OUT"), slow=True),
    Command(
        "detect",
        "found.json",
        ("detect", "IN/ssd.onnx", "--classes", "IN/names.txt", "--images", "IN/photos", "--out", "OUT"),
        ("--max-detections", "1"),
    ),
    Command(
        "convert",
        "converted.json",
        ("convert", "IN/unsure.json", "OUT", "--truth", "IN/truth.json"),
        ("--to", "coco"),
    ),
    Command("convert to Parquet", "truth.parquet", ("convert", "IN/truth.json", "OUT")),
    Command(
        "fuse",
        "fused.json",
        ("fuse", "IN/truth.json", "IN/sure.json", "IN/unsure.json", "--out", "OUT"),
        ("--min-std", "3"),
    ),
    Command(
        "calibrate",
        "calibration.json",
        (
            "calibrate",
            "fit",
            "IN/truth.json",
            "IN/unsure.json",
            "--for",
            "nll",
            "--labels",
            "isotonic",
            "--method",
            "isotonic",
            "--out",
            "OUT",
        ),
        ("--method", "constant"),
    ),
]


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
