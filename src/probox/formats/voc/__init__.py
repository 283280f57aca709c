"""Pascal VOC: an XML file for each image, and detections in a text file for each class."""
