"""`probox demo`: evaluate two synthetic detectors with equal boxes."""

from __future__ import annotations

import click

from probox.cli.console import note, print_json, print_notes, print_text, results, table_width
from probox.cli.shared_options import json_option
from probox.errors import InputError
from probox.notes import as_notes
from probox.support.formatting import printable
from probox.support.optional import check_installed

WHAT_TO_SEE = (
    "Both detectors predict the same boxes and labels, so mAP is equal. The second also predicts a covariance for each "
    "corner: its spatial quality (Sp) is {ratio:.1f} times as high, which raises PDQ."
)


# No scoring options: WHAT_TO_SEE is true with default options only.
@click.command("demo")
@click.option(
    "--save",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write ground truth, detections and, with Pillow, images to DIR.",
)
@json_option
def command(save: str | None, as_json: bool) -> None:
    """Evaluate two synthetic detectors; needs no files.

    Both detectors predict the same boxes and labels; the second also predicts a covariance for each corner. --save
    writes files to try the other commands with.

    \b
    Examples:
      probox demo
      probox demo --save demo
    """
    from probox.demo import make_demo
    from probox.evaluation.evaluate import evaluate
    from probox.evaluation.text import summary_text

    demo = make_demo()
    evaluations = {name: evaluate(demo.truth, found) for name, found in demo.detectors.items()}
    summaries = {name: evaluation.summary() for name, evaluation in evaluations.items()}
    deterministic, probabilistic = summaries.values()
    sentence = WHAT_TO_SEE.format(ratio=probabilistic["spatial"] / deterministic["spatial"])
    written = demo.save(save) if save else []
    notes = []
    try:
        check_installed(("PIL",) if save else (), extra="report", purpose="no images were written, as they need")
    except InputError as error:
        notes.append(str(error))

    if as_json:
        convention = evaluations["deterministic"].recorded_convention.to_dict()
        described = [{"detections": name, "summary": summary} for name, summary in summaries.items()]
        files = [str(path) for path in written]
        answer = {"results": described, "convention": convention, "what_to_see": sentence, "files": files}
        print_json(answer | {"notes": as_notes(notes)})
        return
    first = evaluations["deterministic"]
    text = summary_text(list(summaries.items()), first.convention, against=first.scored_against, width=table_width())
    print_text(text)
    results().print(sentence, markup=False)
    if save:
        note(f"\n{len(written)} files written to {save}; try:")
        for line in _try_next(save)[: 1 if notes else None]:
            click.echo(f"  {printable(line)}", err=True)  # unwrapped, for copying
    print_notes(notes)


def _try_next(folder: str) -> list[str]:
    import shlex
    from pathlib import Path

    truth, deterministic, probabilistic, images, out = (
        shlex.quote(str(Path(folder) / name))
        for name in ("truth.json", "deterministic.json", "probabilistic.json", "images", "results")
    )
    return [
        f"probox evaluate {truth} {deterministic} {probabilistic} --out {out}",
        f"probox draw {out}/probabilistic --images {images} --out pictures",
        f"probox report {out}/deterministic {out}/probabilistic --images {images} --out report",
    ]
