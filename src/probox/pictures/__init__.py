"""Pictures of single images: what is there, what was found, how sure each corner is."""

from probox.pictures.drawing import draw

__all__ = ["draw"]
