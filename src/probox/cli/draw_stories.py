"""`probox draw --stories`: examples found in a result, each with a caption that says why."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from probox.cli.console import note, print_json, progress_bar
from probox.cli.draw_job import without_photo

__all__ = ["write_stories"]

PAGE = "index.html"


def write_stories(
    evaluation: Any,
    found: Any,
    n: int,
    photos: Path | None,
    folder: Path,
    ending: str,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Find stories, draw them, write a page with all of them, and say what was written."""
    from probox.analysis.stories import stories
    from probox.files.output import output_folder
    from probox.files.photos import find_photo
    from probox.pictures.many import Task, draw_task
    from probox.pictures.stories import story_page, story_view
    from probox.support.optional import require

    require("matplotlib", extra="report")
    told = stories(evaluation, n)
    notes = list(told.notes)
    look = {name: value for name, value in options.items() if name not in ("labels", "show_above")}
    names, counts = [], dict.fromkeys((story.kind for story in told), 0)
    for story in told:
        counts[story.kind] += 1
        names.append(f"{story.kind}-{counts[story.kind]}.{ending}")
    written = []
    bare: dict[int, None] = {}  # images without a photo, in their order: an image may have stories of several kinds
    with (
        output_folder(folder, "draw", names=[*names, PAGE]) as out,
        progress_bar("stories", quiet=as_json) as progress,
    ):
        for done, (story, name) in enumerate(zip(told, names, strict=True)):
            progress(done, len(names))
            view = story_view(evaluation, story, found)
            photo = find_photo(photos, story.image_id, view.file_name) if photos else None
            if photos and photo is None:
                bare[story.image_id] = None
            task = Task(view, photo, {**look, "caption": story.caption, "show_above": 0.0}, ending,
                        draw="probox.pictures.stories:draw_story")  # fmt: skip
            drawn = draw_task(task)
            if drawn.problem is not None:
                notes.append(f"{drawn.problem}: plain ground")
            written.append((story, out.write(name, drawn.content)))
        progress(len(written), len(names))
        if photos:
            notes += without_photo(list(bare), photos)
        page = out.write(PAGE, story_page(list(zip(told, names, strict=True)), "Stories", notes, options["colours"]))
    if as_json:
        listed = [{**dataclasses.asdict(story), "file": str(path)} for story, path in written]
        print_json({"stories": listed, "page": str(page), "notes": notes})
        return
    for text in notes:
        note(f"note: {text}")
    for story, path in written:
        note(f"{path.name}: {story.caption}")
    note(f"{len(written)} stories written to {page}")
