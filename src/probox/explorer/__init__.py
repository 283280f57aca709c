"""The explorer: one page in the browser with every result, its numbers, plots and images."""

from probox.explorer.page import write_report

__all__ = ["write_report"]
