"""Judge the paper's insights on detectors of one's own, and every uncertainty against its control.

    python examples/insights.py TRUTH "DETECTOR, plain=FILE" "DETECTOR, constant=FILE" "DETECTOR, VARIANT=FILE"...

prints what each variant gains over plain boxes and over a constant sigma, and then each statement that Hall et al.
(2020) draw from their Table 1, with what was measured, what was required, and whether it holds. `constant` is the
control; every other variant but `plain` counts as probabilistic.
"""

from __future__ import annotations

import sys

import probox
from probox_experiments.insights import CONSTANT, PLAIN, judge_insights

TITLES = {
    "1": "PDQ exposes the differences between probabilistic and plain detectors",
    "2": "PDQ reveals differences in spatial and label quality",
    "3": "Plain detectors are weak at placing boxes probabilistically",
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
            verdict = "holds" if claim.holds else "DOES NOT HOLD"
            print(f"- {verdict}: {claim.claim}. Measured: {claim.measured}. Required: {claim.required}.", end="")
            print(f" ({claim.explanation})" if claim.explanation and not claim.holds else "")


def print_gains(results: dict[str, dict[str, probox.Evaluation]]) -> None:
    """Print PDQ, and what it is above that of plain boxes and of a constant sigma, in points with 95 % intervals."""
    columns = [f"{what} ({threshold:g})" for threshold in THRESHOLDS for what in ("PDQ", "over plain", "over constant")]
    print(f"\n| | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for detector, variants in results.items():
        for variant, result in variants.items():
            cells = []
            for threshold in THRESHOLDS:
                own = result.at_threshold(threshold)
                cells.append(f"{100 * own.pdq:.1f}")
                for control in (PLAIN, CONSTANT):
                    if control not in variants or variant in (PLAIN, control):
                        cells.append("")
                        continue
                    pair = {"own": own, "control": variants[control].at_threshold(threshold)}
                    gain = probox.compare(pair, "pdq", swaps=False).pairs[0].columns["PDQ"].difference
                    cells.append(f"{100 * gain.value:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]")
            print(f"| {detector}, {variant} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
