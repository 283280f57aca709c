"""Training with pPDQ: synthetic scenes with known optimal predictions, a small detector, and eight losses.

>>> from probox_experiments.training.scenes import draw_scenes
>>> draw_scenes(10, seed=0).truth
GroundTruth(10 images, 19 objects, 3 classes)
"""
