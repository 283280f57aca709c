#!/usr/bin/env bash
# The paper's Table 1 with three small detectors, plain and probabilistic: probox detect makes the files, probox table
# the table of docs/detect.md.
#
#   examples/table1.sh COCO_DIR OUT_DIR [TRUTH_JSON]
#
# COCO_DIR holds models/*.onnx and images/; TRUTH_JSON (default: COCO_DIR/val2017_masks_206.json) is ground truth of
# these images. THREADS (default 1) is for the runtime. Files that are already there are kept.
set -euo pipefail
coco=$1 out=$2 truth=${3:-$1/val2017_masks_206.json}
mkdir -p "$out"

make() { # FILE MODEL OPTIONS...
  local file=$out/$1.json.gz model=$coco/models/$2.onnx
  shift 2
  [ -e "$file" ] || probox detect "$model" --images "$coco/images" --truth "$truth" --out "$file" \
    --threads "${THREADS:-1}" "$@"
}

ssd=ssdlite_mobilenet_v2_300 yolox=yolox_nano_416 nanodet=nanodet_m_416
make ssdlite $ssd
make ssdlite_nms_clusters $ssd --uncertainty nms-clusters
make ssdlite_mc_dropout $ssd --uncertainty mc-dropout --passes 20 --dropout-rate 0.05 --dropout-masks elements
make ssdlite_flip_scale $ssd --uncertainty flip-scale
make yolox_nano $yolox
make yolox_nano_nms_clusters $yolox --uncertainty nms-clusters
make yolox_nano_flip_scale $yolox --uncertainty flip-scale
make nanodet $nanodet
make nanodet_edge_distribution $nanodet --uncertainty edge-distribution
make nanodet_nms_clusters $nanodet --uncertainty nms-clusters

probox table "$truth" --thresholds 0.5 0.05 --format markdown \
  "SSDLite=$out/ssdlite.json.gz" \
  "SSDLite, NMS clusters=$out/ssdlite_nms_clusters.json.gz" \
  "SSDLite, MC dropout=$out/ssdlite_mc_dropout.json.gz" \
  "SSDLite, flip and scale=$out/ssdlite_flip_scale.json.gz" \
  "YOLOX-Nano=$out/yolox_nano.json.gz" \
  "YOLOX-Nano, NMS clusters=$out/yolox_nano_nms_clusters.json.gz" \
  "YOLOX-Nano, flip and scale=$out/yolox_nano_flip_scale.json.gz" \
  "NanoDet=$out/nanodet.json.gz" \
  "NanoDet, edge distributions=$out/nanodet_edge_distribution.json.gz" \
  "NanoDet, NMS clusters=$out/nanodet_nms_clusters.json.gz"
