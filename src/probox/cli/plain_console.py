"""The console that commands print to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from probox.support.words import printable

__all__ = ["PlainConsole"]


class PlainConsole(Console):
    """A console on which only the program itself moves the cursor and chooses colours."""

    def on_broken_pipe(self) -> None:
        """End the command when standard output has no reader; go on without messages when standard error has none."""
        if not self.stderr:
            raise  # rich calls this while it handles the error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is shown, names from files made harmless."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
