"""Judge the paper's insights on detectors of one's own.

    python examples/insights.py TRUTH "DETECTOR, plain=FILE" "DETECTOR, constant=FILE" "DETECTOR, VARIANT=FILE"...

prints each statement of Hall et al. (2020), section 5.2, with what was measured, what was required, and whether it
holds. `constant` is the control; every other variant but `plain` counts as probabilistic.
"""

from __future__ import annotations

import sys

import probox
from probox.experiments.insights import judge_insights

TITLES = {
    "1": "PDQ exposes the differences between probabilistic and plain detectors",
    "2": "PDQ reveals differences in spatial and label quality",
    "3": "Plain detectors are weak at placing boxes probabilistically",
    "4": "PDQ does not hide false positives",
}


def main(truth_file: str, *named: str) -> None:
    truth = probox.read_truth(truth_file)
    results: dict[str, dict[str, probox.Evaluation]] = {}
    for entry in named:
        title, _, file = entry.partition("=")
        detector, _, variant = title.partition(", ")
        found = probox.read_detections(file, truth)
        results.setdefault(detector, {})[variant] = probox.evaluate(truth, found, measures=["pdq", "map", "lrp"])
    for number, claims in judge_insights(results).items():
        print(f"\n{number}. {TITLES[number]}")
        for claim in claims:
            verdict = "holds" if claim.holds else "DOES NOT HOLD"
            print(f"- {verdict}: {claim.claim}. Measured: {claim.measured}. Required: {claim.required}.", end="")
            print(f" ({claim.explanation})" if claim.explanation and not claim.holds else "")


if __name__ == "__main__":
    main(*sys.argv[1:])
