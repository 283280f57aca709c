"""PMB-NLL: the negative log likelihood of all objects of an image under all of its detections."""
