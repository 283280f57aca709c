"""Parquet files of detections and of ground truth, read whole or in parts."""
