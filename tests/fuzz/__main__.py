"""The command: `python -m tests.fuzz --minutes 10`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from .run import Finding, Limits, Runner
from .sanitize import sanitized
from .targets import ALL_TARGETS, TARGETS


def main() -> int:
    """Try inputs, print findings and how to reproduce them; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=main.__doc__)
    parser.add_argument("--minutes", type=float, help="try inputs of all targets in turns for so long")
    parser.add_argument("--inputs", type=int, help="try so many inputs of each target")
    parser.add_argument("--total", type=int, help="try so many inputs in all, more of cheap targets than of others")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="decides all inputs; default: the time")
    parser.add_argument(
        "--target", action="append", choices=sorted(ALL_TARGETS), help="this one alone; may be repeated"
    )
    parser.add_argument("--only", type=int, metavar="NUMBER", help="try the input of this number alone")
    parser.add_argument("--processes", type=int, default=1, help="how many workers; default: 1")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where findings are kept")
    parser.add_argument("--sanitize", action="store_true", help="build and use a kernel with ASan and UBSan")
    options = parser.parse_args()
    targets = options.target or sorted(TARGETS)
    environment = sanitized() if options.sanitize else {}
    limits = Limits(seconds=30.0, waiting=300.0, memory=4 << 30) if options.sanitize else Limits()
    runner = Runner(
        targets, options.seed, limits, environment=environment, on_finding=lambda found: _report(found, options.out)
    )
    begun = time.monotonic()
    if options.only is not None:
        runner.run(options.only, options.only + 1)
    else:
        seconds = None if options.minutes is None else 60.0 * options.minutes
        inputs = options.inputs or (None if seconds or options.total else 1000)
        runner.run(0, inputs, total=options.total, seconds=seconds, processes=options.processes)
    took = time.monotonic() - begun
    total = sum(runner.tried.values())
    for target, tried in runner.tried.items():
        print(f"{target:22} {tried:>10,} inputs")
    print(f"{total:,} inputs in {took:.0f} s ({total / took:.0f} per second), {len(runner.findings)} findings")
    return 1 if runner.findings else 0


def _report(finding: Finding, out: Path) -> None:
    place = finding.save(out)
    print(f"{finding.target}: {finding.problem}\n  {place}\n  {finding.command}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
