// Data from Python to the page, written by explorer/payload.py and explorer/page.py.
// tests/explorer/test_types.py checks their keys against these types.

interface Kinds {
  u8: Uint8Array;
  i16: Int16Array;
  u16: Uint16Array;
  i32: Int32Array;
  u32: Uint32Array;
  f32: Float32Array;
  f64: Float64Array;
}

type Kind = keyof Kinds;

/** A column: the type of its numbers, and their bytes in base64. */
type Packed<K extends Kind = Kind> = [kind: K, text: string];

type Quality = "pPDQ" | "spatial" | "label" | "foreground" | "background";

interface Index {
  classes: string[];
  columns: Column[];
  chunk: number;
  version: string;
  thresholds: number[];
  lowest: number;
  images: { id: number[]; w: number[]; h: number[]; name: string[]; photo: string[] };
  objects: { offsets: Packed<"u32">; class: Packed<"u16">; size: Packed<"u8"> };
  obstacles: Record<string, string>;
  results: PackedResult[];
}

/** A column of Table 1. */
interface Column {
  key: string;
  heading: string;
  hint: string;
  unit: "per cent" | "count" | "plain";
  better: "high" | "low" | null;
  complement: boolean;
  measure: string;
  follows: boolean;
}

interface PackedResult {
  name: string;
  about: string;
  comparability: string;
  measures: string[];
  convention: Convention;
  words: string;
  whole: Record<string, number | null>;
  intervals: Record<string, [low: number, high: number]>;
  detections: {
    offsets: Packed<"u32">;
    class: Packed<"i16">;
    size: Packed<"u8">;
    confidence: Packed<"f32">;
    score: Packed<"f32">;
    pair: Packed<"i32">;
    cost?: Packed<"f32">;
  };
  pairs: {
    object: Packed<"i32">;
    pPDQ: Packed<"f64">;
    spatial: Packed<"f32">;
    label: Packed<"f32">;
    foreground: Packed<"f32">;
    background: Packed<"f32">;
  };
  events: { threshold: Packed<"f32">; detection: Packed<"u32">; pair: Packed<"i32"> };
  small: Packed<"u8">;
  unseen: Packed<"u8">;
  curve: Record<"PDQ" | "TP" | "FP" | "FN", (number | null)[]>;
  boxes: PackedBoxes | null;
  why: Why;
}

/** Constants of the metric that the page needs. */
interface Convention {
  label_threshold: number | null;
  label_weight: number;
  region_of_interest: boolean;
  rough_sigmas: number;
  min_determinant: number;
  mahalanobis: number;
  min_probability: number;
  single_precision: boolean;
}

interface PackedOutcomes {
  place: Packed<"u32">;
  matched: Packed<"u16">;
  ignored: Packed<"u16">;
  iou: Packed<"f64">;
}

interface PackedBoxes extends PackedOutcomes {
  order: Packed<"u32">;
  starts: Packed<"u32">;
  cuts: Packed<"u32">;
  late: Packed<"u32">;
  objects: Packed<"u32">;
  events: PackedOutcomes & { threshold: Packed<"f32"> };
}

/** Pairs of detections and objects; for boxes with covariances also the errors of edges: all members or none. */
interface PackedPairs {
  detection: Packed<"u32">;
  since: Packed<"f32">;
  until: Packed<"f32">;
}

interface PackedSigmas {
  level: Packed<"u8">;
  pit: Packed<"u8">;
  box: Packed<"u8">;
  sigma: Packed<"f64">;
  error: Packed<"f64">;
  plain: Packed<"u8">;
  cut: Packed<"u8">;
}

interface Why {
  follows: boolean;
  scores: {
    code: Packed<"u8">;
    spans: { detection: Packed<"u32">; since: Packed<"f32">; until: Packed<"f32">; code: Packed<"u8"> };
  };
  pairs: PackedPairs & (PackedSigmas | { level?: undefined });
  twins: { detection: Packed<"u32">; object: Packed<"u32"> };
  verdict: string[];
  notes: string[];
  left_out: string[];
  threshold: number | null;
  now: number | null;
  best: { threshold: number | null; PDQ: number | null } | null;
  whole: { key: string; PDQ: number | null }[];
}

type StoredMap = [source: string, x: number, y: number, width: number, height: number];

/** A mask: its box, and its runs unless it fills the box. */
type PackedMask = [x0: number, y0: number, x1: number, y1: number, runs?: string];

/** Geometry of an image: objects with their boxes and runs, and the detections of each result. */
interface PackedImage {
  o: PackedMask[];
  d: (string | [numbers: string, pixels: Record<string, StoredMap | PackedMask>])[];
}

interface Constants {
  QUALITIES: Quality[];
  SIZES: string[];
  VERDICT: Record<"TP" | "FP" | "FN" | "IGNORED" | "DROPPED", number>;
  VERDICTS: Record<number, string>;
  IOUS: Record<string, string>;
  BOXES: {
    OVERLAPS: string[];
    AVERAGED: number[];
    AVERAGED_WORDS: string;
    RECALLS: number[];
    GRID: number[];
    RANGES: number;
  };
  LEVELS: number[];
  LINES: number;
  EDGE: number;
  RESAMPLING: {
    LEVEL: number;
    REPLICATES: number;
    FEW: number;
    NORMAL: number;
    DRAWS: number;
    SWAPS: number;
  };
  CONFUSION: { BACKGROUND: string; UNNAMED: string; MOST: number };
  HEAT: string[];
  WHY: {
    PARTS: Record<string, string>;
    WHAT_IF: Record<string, string>;
    EDGES: string[];
    FEW: number;
    NOTHING: number;
    SCORE_BINS: number;
    PIT_BINS: number;
    SIGMA_BINS: number;
    SHARES: number;
    LEAST: number;
    SHAPES: string;
    BAND: number;
    IOU: number;
  };
}
