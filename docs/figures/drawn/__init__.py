"""Figures of docs/measures: one function per metric."""
