"""The HTML report: one page with all results, tables, plots and images."""

from probox.explorer.page import write_report

__all__ = ["write_report"]
