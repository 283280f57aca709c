#!/usr/bin/env bash
# The paper's Table 1 with three small detectors: deterministic, with a constant standard deviation as baseline, with
# uncertainty methods, with the paper's recipes, and calibrated on other images. probox detect writes the detections,
# probox calibrate the calibrated ones, probox table the table of docs/experiments.md, and insights.py checks the paper's
# conclusions.
#
#   examples/table1.sh COCO_DIR OUT_DIR [TRUTH_JSON]
#
# COCO_DIR holds models/*.onnx and images/; TRUTH_JSON (default: COCO_DIR/val2017_masks_206.json) is ground truth of
# these images. THREADS (default 2) is for detectors. BORDER (default pin, for the highest PDQ) is the value of --border:
# BORDER=keep writes the files of docs/informative.md. Existing files are kept.
set -euo pipefail
coco=$1 out=$2 truth=${3:-$1/val2017_masks_206.json}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
border=${BORDER:-pin}
rows=()

add() { # TITLE FILE: a row of the table
  rows+=("$1=$out/$2.json.gz")
}

make() { # TITLE FILE MODEL OPTIONS...
  local title=$1 file=$2 model=$coco/models/$3.onnx
  shift 3
  [ -e "$out/$file.json.gz" ] || probox detect "$model" --images "$coco/images" --truth "$truth" \
    --out "$out/$file.json.gz" --threads "${THREADS:-2}" "$@"
  add "$title" "$file"
}

calibrated() { # TITLE FILE OF: the detections of OF, calibrated with a fit to the images of the four other folds
  [ -e "$out/$2.json.gz" ] || probox calibrate fit "$truth" "$out/$3.json.gz" --label-threshold 0.5 --border "$border" \
    --out "$out/$2.calibration.json" --held-out "$out/$2.json.gz" >&2
  add "$1" "$2"
}

ssd=ssdlite_mobilenet_v2_300 yolox=yolox_nano_416 nanodet=nanodet_m_416
clusters="--uncertainty nms-clusters" dropout="--uncertainty mc-dropout --passes 20" at="--border $border"
make "SSDLite, deterministic" ssdlite $ssd
make "SSDLite, constant" ssdlite_constant $ssd --uncertainty constant $at
make "SSDLite, NMS clusters" ssdlite_nms_clusters $ssd $clusters $at
make "SSDLite, NMS clusters as published" ssdlite_nms_clusters_paper $ssd $clusters --recipe paper
calibrated "SSDLite, NMS clusters calibrated" ssdlite_nms_clusters_calibrated ssdlite_nms_clusters
make "SSDLite, MC dropout" ssdlite_mc_dropout $ssd $dropout $at
make "SSDLite, MC dropout as published" ssdlite_mc_dropout_paper $ssd $dropout --recipe paper
make "SSDLite, flip and scale" ssdlite_flip_scale $ssd --uncertainty flip-scale $at
make "YOLOX-Nano, deterministic" yolox_nano $yolox
make "YOLOX-Nano, constant" yolox_nano_constant $yolox --uncertainty constant $at
make "YOLOX-Nano, NMS clusters" yolox_nano_nms_clusters $yolox $clusters $at
make "YOLOX-Nano, NMS clusters as published" yolox_nano_nms_clusters_paper $yolox $clusters --recipe paper
calibrated "YOLOX-Nano, NMS clusters calibrated" yolox_nano_nms_clusters_calibrated yolox_nano_nms_clusters
make "YOLOX-Nano, MC dropout" yolox_nano_mc_dropout $yolox $dropout $at
make "NanoDet, deterministic" nanodet $nanodet
make "NanoDet, constant" nanodet_constant $nanodet --uncertainty constant $at
make "NanoDet, edge distributions" nanodet_edge_distribution $nanodet --uncertainty edge-distribution $at
make "NanoDet, edge distributions alone" nanodet_edge_distribution_paper $nanodet --uncertainty edge-distribution --recipe paper
calibrated "NanoDet, edge distributions calibrated" nanodet_edge_distribution_calibrated nanodet_edge_distribution
make "NanoDet, NMS clusters" nanodet_nms_clusters $nanodet $clusters $at
make "NanoDet, NMS clusters as published" nanodet_nms_clusters_paper $nanodet $clusters --recipe paper

probox table "$truth" --thresholds 0.5 0.05 --format markdown --intervals "${rows[@]}"
python "$here/insights.py" "$truth" "${rows[@]}"
