"""`probox validate`: errors and likely mistakes of files in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from probox.cli.console import as_option, print_json, results
from probox.cli.shared_options import json_option
from probox.support.formatting import one_line

if TYPE_CHECKING:
    from probox.analysis.validation import Report
    from probox.formats.problems import Finding


@click.command("validate")
@click.argument("truth", type=click.Path())
@click.argument("detections", type=click.Path())
@json_option
def command(truth: str, detections: str, as_json: bool) -> int:
    """Check ground truth and detections: every kind of problem with its first examples.

    Errors stop an evaluation, and the exit status is 1; warnings do not.

    \b
    Example:
      probox validate instances_val2017.json detections.json
    """
    from probox.analysis.validation import validate

    report = validate(truth, detections)
    if as_json:
        print_json(report.to_dict(as_option))
    else:
        _print(report)
    return 0 if report.ok else 1


def _print(report: Report) -> None:
    console = results()
    for title, style, findings in (("error", "bold red", report.errors), ("warning", "yellow", report.warnings)):
        for finding in findings:
            console.print(_heading(title, style, finding), soft_wrap=True)
            for example in finding.examples:
                console.print(Text(f"  {example.message(as_option)}"), soft_wrap=True)
            if finding.count > len(finding.examples):
                console.print(Text(f"  and {finding.count - len(finding.examples):,} more"), soft_wrap=True)
    for note in report.notes:
        console.print(Text(one_line(note.with_label(as_option))), soft_wrap=True)
    read = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in report.counts.items())
    verdict = "can be evaluated" if report.ok else "cannot be evaluated"
    console.print(Text(f"{verdict}: {read}" if read else verdict), soft_wrap=True)


def _heading(title: str, style: str, finding: Finding) -> Text:
    return Text.assemble((title, style), f": {finding.kind} ({finding.count:,})")
