"""COCO's files: ground truth and results."""
