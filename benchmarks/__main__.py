"""Scoring time: every workload, several times, with alternating contenders.

    python -m benchmarks --data FOLDER              # all workloads
    python -m benchmarks --data FOLDER A C          # some of them
    python -m benchmarks --data FOLDER --json out.json
    python -m benchmarks --data FOLDER --against OTHER/bin/python   # another probox, in turn with this one

FOLDER contains `coco/` (annotations, detector outputs) and `golden/`. Each contender runs in a separate process, and
contenders alternate, so that other load on the machine affects all of them. Times are the minimum of all rounds;
"units" are times divided by that of the yardstick in the same run: one `numpy.log` of ten million doubles.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.child import ERROR, Child
from benchmarks.memory import peak_memory

REFERENCE_UNITS = {"speed_full": 230.0, "speed_bbox": 90.0}
"""Time of the reference evaluator in units of the yardstick: scoring only, one thread, idle machine with AVX-512, which
more than doubles the speed of NumPy's logarithms. On machines without it a unit is longer and these do not apply."""

CONTENDERS = ("1 thread", "2 threads", "definition")
DEFINITION_ON = ("speed_bbox", "speed_full")
GROWTH = ("F-1/8", "F-1/4", "F-1/2", "E")
OF = ": "
"""Separator between an interpreter and its workload."""


def worker(workload: str, contender: str, data: Path) -> None:
    """Time one contender once for every line on standard input."""
    import numpy as np

    if contender == "yardstick":
        values = np.random.default_rng(0).random(10**7) + 0.1

        def run() -> None:
            np.log(values)

    else:
        import probox
        from benchmarks.workloads import WORKLOADS
        from probox.measures.pdq import definition

        try:
            truth, found = WORKLOADS[workload][1](data)
        except (probox.InputError, OSError) as error:
            print(f"{ERROR}workload {workload}: {' '.join(str(error).split())}", flush=True)
            return
        if contender == "definition":

            def run() -> None:
                definition.evaluate(truth, found, probox.Convention())

        else:
            threads = int(contender.split()[0])

            def run() -> None:
                probox.evaluate(truth, found, measures=("pdq",), threads=threads)

    print("ready", flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        run()
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "megabytes": peak_memory()}), flush=True)


class Contender:
    """A child process that runs a workload on request."""

    def __init__(self, workload: str, name: str, data: Path) -> None:
        python, _, what = name.rpartition(OF)
        arguments = ["-m", "benchmarks", "--data", str(data), "--worker", workload, what]
        self._child = Child(python or sys.executable, arguments)
        self.seconds: list[float] = []
        self.megabytes = math.nan

    def run(self) -> None:
        """Run once and store the time."""
        answer = self._child.ask()
        self.seconds.append(answer["seconds"])
        self.megabytes = answer["megabytes"]

    def close(self) -> None:
        """End the process."""
        self._child.close()


def measure(workload: str, data: Path, rounds: int, against: str | None = None) -> dict[str, Any]:
    """Return times, units and memory of all contenders on one workload."""
    names = [name for name in CONTENDERS if name != "definition" or workload in DEFINITION_ON]
    if against is not None:
        names = [name for name in names if name != "definition"]
        names = [contender for name in names for contender in (name, f"{against}{OF}{name}")]
    contenders = {name: Contender(workload, name, data) for name in ("yardstick", *names)}
    for number in range(rounds + 1):
        for name, contender in contenders.items():
            if name == "definition" and number > 0:
                continue  # seconds instead of milliseconds: once is enough
            for _ in range(3 if name == "yardstick" else 1):  # short, and all times are divided by it
                contender.run()
            if number == 0 and name != "definition":
                contender.seconds.clear()  # the first round warms up
    for contender in contenders.values():
        contender.close()
    unit = min(contenders["yardstick"].seconds)
    result: dict[str, Any] = {"workload": workload, "unit_seconds": unit, "contenders": {}}
    for name in names:
        seconds = min(contenders[name].seconds)
        result["contenders"][name] = {
            "seconds": seconds,
            "units": seconds / unit,
            "all_seconds": contenders[name].seconds,
            "megabytes": contenders[name].megabytes,
        }
    if workload in REFERENCE_UNITS and same_yardstick():
        result["times_faster_than_reference"] = REFERENCE_UNITS[workload] / result["contenders"]["1 thread"]["units"]
    return result


def same_yardstick() -> bool:
    """Return whether NumPy uses AVX-512 for logarithms, as on the reference machine."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__
    except ImportError:  # NumPy 1
        from numpy.core._multiarray_umath import __cpu_features__

    return bool(__cpu_features__.get("AVX512_SKX", False))


def growth(results: list[dict[str, Any]]) -> float:
    """Return the exponent b of time = a * size^b over the fractions of E, by least squares in logarithms."""
    import numpy as np

    sizes = {"F-1/8": 1 / 8, "F-1/4": 1 / 4, "F-1/2": 1 / 2, "E": 1.0}
    points = [(sizes[r["workload"]], r["contenders"]["1 thread"]["seconds"]) for r in results if r["workload"] in sizes]
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def machine() -> dict[str, Any]:
    """Return the properties of the machine."""
    import numpy as np

    import probox

    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return {
        "processor": name,
        "processors": os.cpu_count(),
        "load_average": load,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "probox": probox.__version__,
    }


def print_table(results: list[dict[str, Any]], about: dict[str, Any]) -> None:
    """Print one line per workload and contender, as a Markdown table."""
    from benchmarks.workloads import WORKLOADS

    print("| workload | contender | seconds | units | against 1 thread | peak MB |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for result in results:
        one = result["contenders"]["1 thread"]["seconds"]
        for name, got in result["contenders"].items():
            title = f"{result['workload']}: {WORKLOADS[result['workload']][0]}" if name == "1 thread" else ""
            ratio = one / got["seconds"]
            other, _, what = name.rpartition(OF)
            cells = [
                title,
                f"{what}, the other" if other else what,
                f"{got['seconds']:.4g}",
                f"{got['units']:.3g}",
                f"{ratio:.2g}",
                f"{got['megabytes']:.0f}",
            ]
            print("| " + " | ".join(cells) + " |")
    print()
    for result in results:
        if "times_faster_than_reference" in result:
            times = result["times_faster_than_reference"]
            print(f"{result['workload']}: {times:.0f} times the reference's speed on one thread")
    if sum(result["workload"] in GROWTH for result in results) >= 2:
        print(f"time grows with the number of detections to the power of {growth(results):.3f}")
    print(", ".join(f"{key} {value}" for key, value in about.items()))


def main() -> None:
    """Run the command line."""
    from benchmarks.start_to_finish import start_to_finish
    from benchmarks.workloads import WORKLOADS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "workloads", nargs="*", help=f"some of {', '.join(WORKLOADS)}, G; default: all with data in FOLDER"
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with coco/ and golden/")
    parser.add_argument("--rounds", type=int, default=5, help="number of runs of each contender (default 5)")
    parser.add_argument("--json", type=Path, help="also write all results to this file")
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter with another probox, to run in turn")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker, options.data)
        return
    chosen = options.workloads or [*WORKLOADS, "G"]
    unknown = [name for name in chosen if name not in WORKLOADS and name != "G"]
    if unknown:
        parser.error(f"unknown workload {unknown[0]!r}, expected some of {', '.join(WORKLOADS)}, G")
    about = machine()
    results = []
    for name in chosen:
        if name == "G":
            continue
        print(f"{name} ...", file=sys.stderr)
        heavy = name == "E" or name.startswith("F")
        rounds = min(options.rounds, 2) if heavy else options.rounds
        try:
            results.append(measure(name, options.data.resolve(), rounds, options.against))
        except SystemExit as error:
            if options.workloads:
                raise
            print(f"skipped: {error}", file=sys.stderr)
    if results:
        print_table(results, about)
    files = start_to_finish(options.data, options.rounds) if "G" in chosen else []
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "scoring": results, "files": files}, indent=1))


if __name__ == "__main__":
    main()
