r"""Check the paper's insights on your detectors, and compare each uncertainty method with its baselines.

    python examples/insights.py TRUTH "DETECTOR, deterministic=FILE" "DETECTOR, constant=FILE" \
        "DETECTOR, VARIANT=FILE"...

prints the gain in PDQ of each variant over deterministic boxes and over a constant standard deviation. It then prints
each statement of Hall et al. (2020) on their Table 1 with its measured value, its requirement and its result.
`constant` is the constant-variance baseline; all variants except it and `deterministic` are probabilistic.
"""

from __future__ import annotations

import sys

import probox
from probox_experiments.insights import CONSTANT, DETERMINISTIC, judge_insights

TITLES = {
    "1": "PDQ exposes the differences between probabilistic and deterministic detectors",
    "2": "PDQ reveals differences in spatial and label quality",
    "3": "Deterministic detectors have low spatial quality",
    "4": "PDQ does not hide false positives",
}
THRESHOLDS = (0.5, 0.05)


def main(truth_file: str, *named: str) -> None:
    truth = probox.read_truth(truth_file)
    results: dict[str, dict[str, probox.Evaluation]] = {}
    for entry in named:
        title, _, file = entry.partition("=")
        detector, _, variant = title.partition(", ")
        found = probox.read_detections(file, truth)
        results.setdefault(detector, {})[variant] = probox.evaluate(truth, found, measures=["pdq", "map", "lrp"])
    print_gains(results)
    for number, claims in judge_insights(results, thresholds=THRESHOLDS).items():
        print(f"\n{number}. {TITLES[number]}")
        for claim in claims:
            result_text = "holds" if claim.holds else "DOES NOT HOLD"
            print(f"- {result_text}: {claim.claim}. Measured: {claim.measured}. Required: {claim.required}.", end="")
            print(f" ({claim.explanation})" if claim.explanation and not claim.holds else "")


def print_gains(results: dict[str, dict[str, probox.Evaluation]]) -> None:
    """Print PDQ and its gain over deterministic boxes and over a constant, in points with 95% intervals."""
    columns = [
        f"{what} ({threshold:g})" for threshold in THRESHOLDS for what in ("PDQ", "over deterministic", "over constant")
    ]
    print(f"\n| | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for detector, variants in results.items():
        for variant, result in variants.items():
            cells = []
            for threshold in THRESHOLDS:
                own = result.at_threshold(threshold)
                cells.append(f"{100 * own.pdq:.1f}")
                for baseline in (DETERMINISTIC, CONSTANT):
                    if baseline not in variants or variant in (DETERMINISTIC, baseline):
                        cells.append("")
                        continue
                    pair = {"own": own, "baseline": variants[baseline].at_threshold(threshold)}
                    gain = probox.compare(pair, "pdq", swaps=False).pairs[0].columns["PDQ"].difference
                    cells.append(f"{100 * gain.value:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]")
            print(f"| {detector}, {variant} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
