"""`probox demo`: two detectors with the same boxes, scored on a built-in scene."""

from __future__ import annotations

import click

from probox.cli.console import note, print_json, print_notes, print_text, results, table_width
from probox.cli.shared_options import json_option
from probox.errors import InputError
from probox.notes import as_notes
from probox.support.formatting import printable
from probox.support.optional import check_installed

WHAT_TO_SEE = (
    "Both detectors give the same boxes and labels, so mAP cannot tell them apart; the second also says how unsure "
    "each corner is, which makes its spatial quality (Sp) {ratio:.1f} times as high, and PDQ follows."
)


# No options of scoring: the scene was made to show one thing under the usual convention, and the sentence says it.
@click.command("demo")
@click.option(
    "--save",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write ground truth, detections and, if Pillow is installed, pictures.",
)
@json_option
def command(save: str | None, as_json: bool) -> None:
    """Score two detectors on a small built-in scene; needs no files.

    \b
    probox demo
    probox demo --save demo    # truth, detections and pictures, to try every other command on
    """
    from probox.demo import make_demo
    from probox.evaluation.evaluate import evaluate
    from probox.evaluation.text import summary_text

    demo = make_demo()
    evaluations = {name: evaluate(demo.truth, found) for name, found in demo.detectors.items()}
    summaries = {name: evaluation.summary() for name, evaluation in evaluations.items()}
    sure, unsure = summaries.values()
    sentence = WHAT_TO_SEE.format(ratio=unsure["spatial"] / sure["spatial"])
    written = demo.save(save) if save else []
    notes = []
    try:
        check_installed(("PIL",) if save else (), extra="report", purpose="no pictures were written, which need")
    except InputError as error:
        notes.append(str(error))

    if as_json:
        convention = evaluations["sure"].convention.to_dict()
        described = [{"detections": name, "summary": summary} for name, summary in summaries.items()]
        files = [str(path) for path in written]
        told = {"results": described, "convention": convention, "what_to_see": sentence, "files": files}
        print_json(told | {"notes": as_notes(notes)})
        return
    first = evaluations["sure"]
    text = summary_text(list(summaries.items()), first.convention, against=first.scored_against, width=table_width())
    print_text(text)
    results().print(sentence, markup=False)
    if save:
        note(f"\n{len(written)} files written to {save}; try:")
        for line in _try_next(save)[: 1 if notes else None]:
            click.echo(f"  {printable(line)}", err=True)  # unwrapped, to be copied
    print_notes(notes)


def _try_next(folder: str) -> list[str]:
    import shlex
    from pathlib import Path

    truth, sure, unsure, images, out = (
        shlex.quote(str(Path(folder) / name))
        for name in ("truth.json", "sure.json", "unsure.json", "images", "results")
    )
    return [
        f"probox evaluate {truth} {sure} {unsure} --out {out}",
        f"probox draw {out}/unsure --images {images} --out pictures",
        f"probox report {out}/sure {out}/unsure --images {images} --out report",
    ]
