"""The challenge's files: detections per image, ground truth in folders of masks, heatmaps."""
