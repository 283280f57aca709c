"""KITTI: a text file for each image, with 15 columns, or 16 with a score."""
