"""YOLO: a text file of labels for each image, and a `data.yaml` that names images and classes."""
