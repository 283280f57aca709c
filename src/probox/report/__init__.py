"""Pictures, plots and the HTML explorer: what an evaluation looks like."""

from probox.report.pictures import draw

__all__ = ["draw"]
