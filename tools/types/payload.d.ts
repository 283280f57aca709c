// What Python tells the page: explorer/payload.py, explorer/boxes.py, explorer/why.py and explorer/constants.py write it,
// tests/explorer/test_types.py holds their keys to these.

type Kind = "u8" | "i16" | "u16" | "i32" | "u32" | "f32" | "f64";

/** A column: the type of its numbers, and their bytes in base64. */
type Packed = [kind: Kind, text: string];

type Quality = "pPDQ" | "spatial" | "label" | "foreground" | "background";

interface Index {
  classes: string[];
  columns: Column[];
  chunk: number;
  version: string;
  thresholds: number[];
  lowest: number;
  images: { id: number[]; w: number[]; h: number[]; name: string[]; photo: string[] };
  objects: { offsets: Packed; class: Packed; size: Packed };
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
  measures: string[];
  convention: Convention;
  words: string;
  whole: Record<string, number | null>;
  intervals: Record<string, [low: number, high: number]>;
  detections: {
    offsets: Packed;
    class: Packed;
    size: Packed;
    confidence: Packed;
    score: Packed;
    pair: Packed;
    cost?: Packed;
  };
  pairs: Record<Quality | "object", Packed>;
  events: { threshold: Packed; detection: Packed; pair: Packed };
  small: Packed;
  unseen: Packed;
  curve: Record<"PDQ" | "TP" | "FP" | "FN", (number | null)[]>;
  boxes: PackedBoxes | null;
  why: Why;
}

/** The constants of the measure that the page itself needs. */
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
  place: Packed;
  matched: Packed;
  ignored: Packed;
  iou: Packed;
}

interface PackedBoxes extends PackedOutcomes {
  order: Packed;
  starts: Packed;
  cuts: Packed;
  late: Packed;
  objects: Packed;
  events: PackedOutcomes & { threshold: Packed };
}

interface Why {
  follows: boolean;
  scores: { code: Packed; spans: { detection: Packed; since: Packed; until: Packed; code: Packed } };
  pairs: {
    detection: Packed;
    since: Packed;
    until: Packed;
    level?: Packed;
    pit?: Packed;
    box?: Packed;
    sigma?: Packed;
    error?: Packed;
    plain?: Packed;
    cut?: Packed;
  };
  twins: { detection: Packed; object: Packed };
  verdict: string[];
  remarks: string[];
  left_out: string[];
  threshold: number | null;
  now: number | null;
  best: { threshold: number; PDQ: number | null } | null;
  whole: { key: string; PDQ: number | null }[];
}

type StoredMap = [source: string, x: number, y: number, width: number, height: number];

/** The geometry of an image: objects with their boxes and runs, and what each result found. */
interface PackedImage {
  o: [x0: number, y0: number, x1: number, y1: number, runs?: string][];
  d: (string | [numbers: string, maps: Record<string, StoredMap>])[];
}

interface Constants {
  QUALITIES: Quality[];
  SIZES: string[];
  VERDICT: Record<"TP" | "FP" | "FN" | "IGNORED" | "DROPPED", number>;
  VERDICTS: Record<number, string>;
  IOUS: Record<string, string>;
  BOXES: { OVERLAPS: string[]; RECALLS: number[]; GRID: number[]; RANGES: number };
  SIGMAS: number[];
  SIGMA: number;
  LEVELS: number[];
  LINES: number;
  EDGE: number;
  RESAMPLING: {
    LEVEL: number;
    REPLICATES: number;
    FEW: number;
    NORMAL: number;
    DRAWS: GeneratorState;
    SWAPS: GeneratorState;
    MORE: GeneratorState;
  };
  CONFUSION: { BACKGROUND: string; UNNAMED: string; MOST: number };
  HEAT: string[];
  WHY: {
    PARTS: Record<string, { name: string; line: number }>;
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

/** State and increment of PCG64, in hexadecimal digits. */
type GeneratorState = [state: string, increment: string];
