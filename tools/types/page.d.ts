// Types shared by the scripts of the page: the members of `window.probox`, and the data they exchange.
// Scripts assign functions to members declared here, which also gives their parameters these types.

interface Window {
  probox: Probox;
}

/** Children of `h` and `s`: elements, text, lists of these, and values omitted by a condition. */
type Child = Node | string | false | null | undefined | readonly Child[];
type Properties = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

/** Elements with properties beyond those of HTMLElement, by id. */
interface ElementsById {
  threshold: HTMLInputElement;
  exact: HTMLInputElement;
  find: HTMLInputElement;
  from: HTMLInputElement;
  to: HTMLInputElement;
  "confusion-all": HTMLInputElement;
  "confusion-shares": HTMLInputElement;
  detector: HTMLSelectElement;
  rival: HTMLSelectElement;
  duel: HTMLSelectElement;
  sort: HTMLSelectElement;
  by: HTMLSelectElement;
  class: HTMLSelectElement;
  size: HTMLSelectElement;
  verdict: HTMLSelectElement;
  quality: HTMLSelectElement;
  tagged: HTMLSelectElement;
  of: HTMLSelectElement;
  iou: HTMLSelectElement;
  edge: HTMLSelectElement;
  shown: HTMLSelectElement;
  other: HTMLSelectElement;
  "versus-main": HTMLSelectElement;
  "versus-rival": HTMLSelectElement;
  "confusion-detector": HTMLSelectElement;
  viewer: HTMLDialogElement;
  keys: HTMLDialogElement;
  summary: HTMLTableElement;
  classes: HTMLTableElement;
  sizes: HTMLTableElement;
  "versus-table": HTMLTableElement;
  "confusion-table": HTMLTableElement;
}

type SelectId = {
  [K in keyof ElementsById]: ElementsById[K] extends HTMLSelectElement ? K : never;
}[keyof ElementsById];

/** An option of a list: a word, or a value and its label. */
type Choice = string | [value: string | number, text: string];

type Groups = Int8Array | Int16Array | Uint16Array | Int32Array;
type List = ArrayLike<number>;

// --- the state ---

interface State {
  t: number | null;
  main: number;
  rival: number | null;
  show: string;
  sort: string;
  by: string;
  unseen: string;
  class: number | null;
  size: number | null;
  verdict: "" | "TP" | "FP" | "FN";
  quality: Quality;
  lo: number;
  hi: number;
  duel: string;
  find: string;
  tags: string;
  tagged: string;
  confused: string | null;
  matrix: string;
  shares: string;
  of: Quality;
  iou: string;
  edge: string;
  image: number | null;
  other: number | null;
  layers: string;
  pick: string | null;
  all: string;
}

type Key = keyof State;
type Work = (store: Store, state: State) => void;

/** Representation of a part of the state in the address. */
interface Field {
  word: string;
  parse(text: string, store: Store): State[Key] | undefined;
  format(value: State[Key], store: Store): string;
}

/** Functions called when parts of the state change. */
interface Follower {
  keys: Key[];
  work: Work;
  when: "now" | "frame" | "rest";
  id: string | null;
}

// --- the results ---

/** Columns of a table, unpacked. */
type Unpacked<T> = { [K in keyof T]: UnpackedColumn<T[K]> };
type UnpackedColumn<P> = P extends Packed<infer K> ? Kinds[K] : P;

interface Result extends Omit<PackedResult, "detections" | "pairs" | "events" | "small" | "unseen"> {
  detections: Unpacked<PackedResult["detections"]>;
  pairs: Unpacked<PackedResult["pairs"]>;
  events: Unpacked<PackedResult["events"]>;
  small: Uint8Array;
  unseen: Uint8Array;
  unpacked?: UnpackedBoxes;
}

interface UnpackedBoxes extends Unpacked<Omit<PackedBoxes, "events">> {
  confidences: Float32Array;
  wrong: Uint8Array;
  sorted: boolean;
  entry: Int32Array;
  before: Uint32Array;
  events: { threshold: Float32Array; place: Uint32Array; first: number };
  values: Float64Array[];
  totals: Uint32Array[];
}

/** Means and counts of a group. */
type Row = Record<Quality | "PDQ" | "TP" | "FP" | "FN" | "objects", number>;
type BoxNumbers = Record<
  "precision" | "recall" | "mAP" | "AP50" | "AP75" | "moLRP" | "moLRP_loc" | "moLRP_fp" | "moLRP_fn",
  number
>;

interface BoxView {
  ofClass(c: number): BoxNumbers;
  total(): BoxNumbers;
  curve(overlap: string, c?: number | null): number[] | null;
}

interface Store {
  index: Index;
  classes: string[];
  images: Index["images"];
  count: number;
  rowOfImage: Map<number, number>;
  objects: Unpacked<Index["objects"]>;
  results: Result[];
  usedClasses(): number[];
  nameOfClass(number: number): string;
  view(r: number, threshold: number | null): View;
}

/** Counts, costs and sums of qualities, with one entry per group. */
interface Sums extends Record<Quality | "TP" | "FP" | "FN" | "objects" | "cost", Float64Array> {
  rows(): Row[];
}

/** Outcome of an object or detection: also the name of its colour. */
type Tone = "right" | "wrong-class" | "wrong" | "neutral";

interface View {
  store: Store;
  result: Result;
  threshold: number | null;
  pair: Int32Array;
  verdict: Uint8Array;
  objectDetection: Int32Array;
  objectVerdict: Uint8Array;
  right: Uint32Array;
  rightPair: Int32Array;
  wrong: Uint32Array;
  _boxes?: BoxView[];
  sums(groups: number, ofDetection: Groups, ofObject: Groups): Sums;
  whole(): Sums;
  imageSums(): Sums;
  total(): Row;
  perClass(): Row[];
  perSize(): Row[];
  perImage(): Row[];
  qualities(d: number): Record<Quality, number> | null;
  partner(d: number): number;
  wrongClass(d: number): boolean;
  nameOf(d: number): string;
  boxes(size?: number | null): BoxView | null;
}

// --- geometry ---

type Box = [x1: number, y1: number, x2: number, y2: number];
type Point = [x: number, y: number];
type Covariance = [xx: number, xy: number, yy: number];
type Run = [y: number, begin: number, end: number];

interface SceneMask {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  filled: boolean;
  runs: Run[];
  bitmaps?: Map<string, HTMLCanvasElement>;
  area?: Path2D;
  outline?: Path2D;
}

interface SceneObject extends SceneMask {
  row: number;
}

interface SceneDetection {
  row: number;
  box: Box;
  corners: [Covariance, Covariance] | null;
  map: { source: string; box: [x: number, y: number, width: number, height: number] } | null;
  mask: SceneMask | null;
  values?: Float32Array;
  loading?: HTMLImageElement;
}

interface Geometry {
  objects: SceneObject[];
  results: SceneDetection[][];
  width: number;
  height: number;
  heat?: Map<number, { key: string; canvas: HTMLCanvasElement }> | null;
}

/** An image of a chunk; its geometry is cached once unpacked. */
interface KeptImage extends PackedImage {
  ready?: Geometry;
}

type Focus = { object: number; detection: number } | null;
type Context = CanvasRenderingContext2D;

/** An object or a detection of a result. */
interface Entry {
  kind: string;
  r: number;
  row: number;
}

/** A match, a miss (d is -1) or a false positive (o is -1). */
interface Item {
  image: number;
  d: number;
  o: number;
}

interface Label {
  w: number;
  box: Box;
  others: Box[];
  objects: Box[];
  far: boolean;
  anchor(x: number, y: number, inner: boolean): Point;
}

/** Content of a label in the large view, before its position is known. */
interface NamedThing extends Omit<Label, "w" | "far"> {
  text: string;
  verdict: number;
  colour: string;
  chosen: boolean;
}

interface PlacedLabel {
  x: number;
  y: number;
  leader: Box | null;
}

interface Zoom {
  scale: number;
  x: number;
  y: number;
}

interface Pane {
  r: number;
  canvas: HTMLCanvasElement;
  over: HTMLCanvasElement;
  names: HTMLCanvasElement;
  stage: HTMLElement;
  box: HTMLElement;
  text: HTMLElement;
  limit: HTMLElement;
  scale: HTMLElement;
  labels?: (PlacedLabel & { text: string })[];
}

// --- selection of the gallery ---

interface ItemFilter {
  keys: Key[];
  make(store: Store, state: State, r: number, view: View): ((d: number, o: number) => boolean) | null;
  words(store: Store, state: State): string;
}

interface Passing {
  found: Uint8Array;
  there: Uint8Array;
  all: boolean;
}

/** Content of the gallery: images, or items of them, which are null for images. */
interface Shown {
  t: number | null;
  images: number[];
  items: Item[] | null;
  passed: Passing;
  sums: ImageSums;
  rival: number | null;
  rivals: ImageSums | null;
  words: string;
}

interface ImageSums {
  PDQ: Float64Array;
  lost: Float64Array;
  TP: Float64Array;
  FP: Float64Array;
  FN: Float64Array;
}

// --- charts ---

interface Series {
  name?: string;
  colour?: string;
  mark?: number;
  marked?: string;
  dash?: string;
  step?: boolean;
  reference?: boolean;
  x: number[];
  y: (number | null)[];
  tip?(i: number): string;
}

type Scale = "linear" | "log" | "decades";

interface ChartOptions {
  xRange: [low: number, high: number];
  yRange: [low: number, high: number];
  xLabel: string;
  yLabel: string;
  label: string;
  height?: number;
  xScale?: Scale;
  yScale?: Scale;
}

interface LineOptions extends Omit<ChartOptions, "yRange"> {
  yRange?: [low: number, high: number];
  series: Series[];
  format(value: number): string;
  marker?: number;
  level?: number;
  band?: [low: number, high: number] | null;
  brush?: Limits | null;
  brushStep?: number;
  onBrush?(low: number | null, high: number | null): void;
  onPick?(x: number): void;
}

type Limits = [low: number, high: number];

interface BrushOptions extends Pick<LineOptions, "brush" | "brushStep" | "xRange" | "xLabel"> {
  onBrush(low: number | null, high: number | null): void;
  x(value: number): number;
  back(px: number): number;
  top: number;
  bottom: number;
  cursor(): number | null;
}

interface CloudSeries {
  name: string;
  colour: string;
  mark?: number;
  r: number;
  rows: List;
  x: number[] | Float64Array;
  y: number[] | Float64Array;
}

interface CloudOptions extends Omit<ChartOptions, "xRange" | "yRange"> {
  xRange?: Limits;
  yRange?: Limits;
  series: CloudSeries[];
  lines?: Series[];
  levels?: boolean;
  format?(value: number): string;
  onPick(one: CloudSeries, i: number): void;
}

interface BarSeries {
  name: string;
  colour: string;
  mark?: number;
  values: number[];
}

interface BarOptions<S extends BarSeries = BarSeries> {
  groups: string[];
  series: S[];
  label: string;
  above?: boolean;
  high?: number;
  format(value: number, group: number, series: S): string;
}

interface Part {
  key: string;
  name: string;
  colour: string;
}

interface PartsOptions {
  rows: { name: string; colour: string; mark: number; values: number[] | null; note: string }[];
  parts: Part[];
  label: string;
  format(value: number): string;
}

type TipLine = [text: string, colour?: string, mark?: number];
interface Tip {
  show(px: number, py: number, lines: TipLine[]): void;
  hide(): void;
}

interface Frame {
  svg: SVGSVGElement;
  x(value: number): number;
  y(value: number): number;
  back(px: number): number;
  width: number;
  height: number;
}

// --- tables ---

interface Ends {
  low: number;
  high: number;
}

interface GroupColumn {
  key: string;
  heading: string;
  hint?: string;
  values: number[];
  early?: boolean;
  look?(value: number): Properties;
  text(value: number, group: number): Child;
  ends?(group: number): Ends | null | undefined;
}

/** A row of a sortable table: by name, or by one of its numbers. */
interface TableRow {
  name: string;
  numbers: Record<string, number>;
}

/** A row of the summary, of result `number`. */
interface SummaryRow extends TableRow {
  number: number;
}

interface Sort {
  key: string;
  down: boolean;
}

/** Tables of classes and sizes, by element id. */
type GroupTable = "classes" | "sizes";

interface Grouping {
  key: "class" | "size";
  heading: string;
  sort: string;
  names(store: Store): string[];
  rows(view: View): Row[];
  boxes(view: View, group: number): BoxNumbers | undefined;
}

/** A column of COCO's metrics in these tables. */
interface BoxColumn {
  key: string;
  heading: string;
  measure: string;
  of(own: BoxNumbers): number;
  hint: string | Record<GroupTable, string>;
}

interface Exporting {
  name?: string;
  more?: ((store: Store, state: State) => string) | null;
  tools?: string | null;
}

// --- diagnosis and resampling ---

type WhyPairs = Unpacked<PackedPairs & PackedSigmas>;

interface PairsAt {
  pairs: WhyPairs;
  rows: number[];
  judged: number;
  plain: number;
  cut: number;
  why: string;
}

type Shares = { total: number; shares: number[] };

interface Diagnosis {
  budget(view: View): Record<string, number> | null;
  whatIf(view: View): Record<"now" | "no_false_positives" | "no_duplicates" | "duplicates", number>;
  reliability(
    result: Result,
    threshold: number | null,
  ): { n: Float64Array; hits: Float64Array; sums: Float64Array; total: number; error: number };
  pairsAt(result: Result, threshold: number | null): PairsAt;
  coverage(at: PairsAt, edge?: number | null): { edges: number[]; boxes: number[]; judged: number; dense: number };
  pit(at: PairsAt, edge: number): Shares;
  sparsification(at: PairsAt): { own: Float64Array; best: Float64Array; random: number; ause: number };
  sigmaError(at: PairsAt): { across: number[]; up: number[]; rows: Uint32Array; spearman: number };
}

interface Difference {
  first: number;
  second: number;
  difference: number;
  between: Ends | null;
  p: number;
  claimed: boolean;
}

interface ClassDifference extends Difference {
  adjusted: number;
  images: number;
}

interface Compared {
  columns: Record<string, Difference>;
  classes: (ClassDifference | null)[];
}

type ImageColumns = Record<string, Float64Array>;

interface Sampled {
  sums: ImageColumns;
  values: Record<string, number>;
  replicates: Record<string, Float64Array>;
  intervals: Record<string, Ends | null>;
}

interface Swaps {
  bits: Uint8Array;
  count: number;
}

interface Samples {
  images: number;
  drawn(): Generator<undefined, Uint8Array>;
  swapped(): Generator<undefined, Swaps>;
}

/** Numerator and denominator of PDQ of a class in the images with objects or detections of it, for two views. */
interface ClassPart {
  images: number[];
  above: [number[], number[]];
  below: [number[], number[]];
}

/** Bootstrap and permutation of images, as in resampling.js. */
interface Drawing {
  Samples: new (images: number, classes: number) => Samples;
  addDrawn(sums: Float64Array, weights: Uint8Array, image: number, value: number): void;
  addSwapped(sums: Float64Array, swaps: Swaps, images: number[], values: List): void;
  claimed(adjusted: number, between: Ends | null): boolean;
  draws(images: number): Generator<undefined, Uint8Array>;
  swaps(images: number, count: number): Generator<undefined, Swaps>;
  holm(p: number[]): number[];
  inSlices<T>(work: Generator<undefined, T>, done: (result: T) => void): () => void;
  interval(value: number, replicates: Float64Array, images: number, unit?: string): Ends | null;
  normal(x: number): number;
  pValue(difference: number, swapped: List & Iterable<number>, images: number): number;
  quantile(ascending: Float64Array, q: number): number;
}

/** Additional members from comparing.js. */
interface Comparing {
  KEYS: string[];
  compared(
    store: Store,
    samples: Samples,
    pair: [a: number, b: number],
    threshold: number | null,
    both: [Sampled, Sampled],
  ): Generator<undefined, Compared>;
  conclusion(names: string[], found: Difference | null, images: number): string;
  pText(p: number): string;
  sampled(store: Store, samples: Samples, r: number, threshold: number | null): Generator<undefined, Sampled>;
  unitOf(key: string): string;
}

interface Resampling extends Drawing, Comparing {
  busy: boolean;
}

type Named = { name: string; colour: string; mark: number; r: number };
/** A cell of a card's table: text, or a number with its text. */
type Cell = string | [value: number, text: string];

// --- the page ---

interface Probox {
  constants: Constants;
  store: Store;

  // dom.js
  h<K extends keyof HTMLElementTagNameMap>(tag: K, ...parts: (Properties | Child)[]): HTMLElementTagNameMap[K];
  s<K extends keyof SVGElementTagNameMap>(tag: K, ...parts: (Properties | Child)[]): SVGElementTagNameMap[K];
  head(headings: (string | HTMLElement)[]): HTMLElement;
  row(first: Child, ...parts: (Properties | Child)[]): HTMLElement;
  cell(value: number, ...parts: (Properties | Child)[]): HTMLElement;
  fillTable(table: HTMLTableElement, ...content: Node[]): string | undefined;
  byId<K extends string>(id: K): K extends keyof ElementsById ? ElementsById[K] : HTMLElement;
  showControl(id: SelectId | "confusion-all", shown: boolean): void;
  isCommand(event: KeyboardEvent): boolean;
  focusIn(element: HTMLElement): HTMLElement | null;
  percent(value: number, digits?: number): string;
  count(value: number): string;
  drawing(canvas: HTMLCanvasElement, settings?: CanvasRenderingContext2DSettings): Context;
  widthOf(element: Element): number;
  say(text: string): void;
  announce(text: string): void;
  copy(text: string, what: string): Promise<void>;
  copied?: string;
  download(name: string, text: string, type?: string): void;
  downloaded?: { name: string; text: string };
  css(name: string): string;
  forgetColours(): void;
  line(number: number): string;
  lineColour(number: number): string;
  swatch(number: number): HTMLElement;
  later(work: () => void): void;
  eachFrame(work: () => void): () => void;

  // store.js, boxes.js
  once<Source extends object, Made>(make: (source: Source) => Made): (source: Source) => Made;
  Store: new (index: Index) => Store;
  View: { prototype: View };
  column<K extends Kind>(packed: Packed<K>): Kinds[K];
  columns<T extends object>(table: T): Unpacked<T>;
  imageOfRows(offsets: Uint32Array): Int32Array;

  // state.js
  field<K extends Key>(
    key: K,
    initial: State[K],
    word: string,
    parse: (text: string, store: Store) => State[K] | undefined,
    format?: (value: State[K], store: Store) => string,
  ): void;
  oneOf<T extends string>(words: readonly T[]): (text: string) => T | undefined;
  numberIn(low: number, high: number): (text: string) => number | undefined;
  wholeIn(low: number, high: number): (text: string) => number | undefined;
  state(): State;
  initial<K extends Key>(key: K): State[K];
  follow(keys: Key[], work: Work, when?: "now" | "frame" | "rest", id?: string | null): void;
  choice(
    id: SelectId,
    key: Key,
    choices?: Choice[],
    options?: { change?(value: any): Partial<State>; shown?(state: State): string | number | null },
  ): void;
  toggle(id: "confusion-all" | "confusion-shares", key: Key, on: string): void;
  onStart(work: (store: Store) => void): void;
  update(changes: Partial<State>, push?: boolean): void;
  resting: boolean;
  settle(): void;
  redraw(): void;
  start(index: Index): void;

  // app.js
  keys: [keys: string, what: string, where: string][];
  showKeys(): void;
  jump(to: string | HTMLElement): void;

  // geometry.js, heatmap.js, paint.js, labels.js
  receive(number: number, images: PackedImage[]): void;
  withGeometry(store: Store, row: number, callback: (geometry: Geometry) => void): void;
  contains(object: SceneMask, x: number, y: number): boolean;
  maskCanvas(object: SceneMask, colour: string): HTMLCanvasElement;
  area(object: SceneMask): Path2D;
  outline(object: SceneMask): Path2D;
  axes(covariance: Covariance): { long: number; short: number; angle: number };
  heatmap(
    detection: SceneDetection,
    width: number,
    height: number,
    columns: number,
    rows: number,
    convention: Convention,
  ): Float32Array | Float64Array;
  heatColour(probability: number): number[];
  paintHeatmap(
    context: Context,
    geometry: Geometry,
    view: View,
    r: number,
    detections: SceneDetection[],
    focus: Focus,
  ): void;
  heatScale(): HTMLElement;
  toneOf(view: View, kind: string, row: number): Tone;
  outcomeColour(view: View, kind: string, row: number): string;
  MOST: number;
  limitNote(view: View, image?: number): (Node | string)[];
  withPhoto(store: Store, row: number, small: boolean, callback: (image: HTMLImageElement) => void): void;
  keptDetections(geometry: Geometry, view: View, r: number): SceneDetection[];
  drawnDetections(geometry: Geometry, view: View, r: number, focus: Focus): SceneDetection[];
  within(context: Context, width: number, height: number, work: () => void): void;
  paintSmall(
    canvas: HTMLCanvasElement,
    view: View,
    r: number,
    row: number,
    place: [scale: number, left: number, top: number],
    photo: HTMLImageElement | null,
    geometry: Geometry | null,
    options: { zoom: number; layers: Set<string>; focus: Focus; fine: boolean },
  ): void;
  paintScene(
    context: Context,
    geometry: Geometry,
    view: View,
    r: number,
    options: { zoom: number; layers: Set<string>; focus: Focus; fine: boolean; rings?: number[] },
  ): void;
  placeLabels(labels: Label[], size: Point): (PlacedLabel | null)[];
  pointOfMask(object: SceneObject, x: number, y: number, inner: boolean): Point;
  paintLabels(
    context: Context,
    geometry: Geometry,
    view: View,
    r: number,
    options: {
      toScreen(x: number, y: number): Point;
      toImage(x: number, y: number): Point;
      size: Point;
      focus: Focus;
    },
  ): (PlacedLabel & { text: string })[];
  sampleBox(detection: SceneDetection, seed: number, number: number): Box | null;
  shownSamples(
    detection: SceneDetection,
    seed: number,
    step: number,
    still: boolean,
  ): { box: Box | null; strength: number }[];
  paintSamples(
    context: Context,
    detections: SceneDetection[],
    options: {
      seed(d: SceneDetection): number;
      colour(d: SceneDetection): string;
      step: number;
      still: boolean;
      zoom: number;
    },
  ): void;
  sampleSeed(image: number, r: number, number: number): number;
  sampler(
    wanted: () => boolean,
    paint: (step: number, still: boolean) => void,
  ): { check(): void; reset(): void; now(): void };
  sampling?: boolean;

  // axes.js, gestures.js, charts.js, bars.js
  named(r: number): Named;
  legend(store: Store): HTMLElement[];
  glyph(colour: string, mark?: number): HTMLElement | SVGElement;
  chartParts: {
    MARGIN: { left: number; right: number; top: number; bottom: number };
    frame(container: HTMLElement, options: ChartOptions): Frame;
    tooltip(container: HTMLElement): Tip;
    shape(mark: number, x: number, y: number, colour: string | undefined): SVGElement;
  };
  brushOf(svg: SVGSVGElement, options: BrushOptions): { clicked(): boolean; key(event: KeyboardEvent): string | null };
  lineChart(container: HTMLElement, options: LineOptions): void;
  cloudChart(container: HTMLElement, options: CloudOptions): void;
  barChart<S extends BarSeries>(container: HTMLElement, options: BarOptions<S>): void;
  partSwatch(part: Part, number: number): SVGElement;
  partsChart(container: HTMLElement, options: PartsOptions): void;

  // filters.js, tags.js, exports.js
  setThreshold(value: number): void;
  detectorChoice(id: SelectId, key: Key, change?: (main: number) => Partial<State>): void;
  packIds(ids: Iterable<number>): string;
  unpackIds(text: string): Set<number> | undefined;
  taggedIds(state: State): Set<number>;
  toggleTag(id: number): void;
  tagImages(ids: number[]): void;
  thresholdText(store: Store, state: State): string;
  caption(store: Store, state: State): string;
  exported(id: string, form: "markdown" | "latex" | "csv"): string;
  exportable(id: string, options?: Exporting): void;
  captionsAgain(): void;

  // selection.js
  FILTERS: Key[];
  GALLERY: Key[];
  SORTS: string[];
  ORDERS: string[];
  DUELS: Record<string, (a: string, b: string) => string>;
  addItemFilter(filter: ItemFilter): void;
  rivalOf(state: State): number | null;
  filterWords(store: Store, state: State): string;
  passing(store: Store, state: State, r: number): Passing;
  imageSums(store: Store, state: State, r: number, passing: Passing): ImageSums;
  sortOf(state: State): string;
  orderOf(state: State): string;
  sortImages(
    store: Store,
    state: State,
    rows: number[],
    sums: ImageSums,
    rivals: ImageSums | null,
  ): { rows: number[]; apart: number };
  itemList(
    store: Store,
    state: State,
    passing: Passing,
    most: number,
    images: number[],
  ): { items: Item[]; total: number };
  histogram(view: View, quality: Quality, bins: number): number[];

  // tables.js, comparing.js, resampling.js, versus.js, confusion.js
  hintOf(column: Column): string;
  shortName(name: string, most?: number): string;
  summaryRows(store: Store, threshold: number | null): SummaryRow[];
  intervalOf(r: number, key: string, threshold: number | null): Ends | null;
  intervalWords(store: Store, state: State): string;
  renderSummaryAgain(): void;
  groupColumns: ((id: GroupTable, store: Store, state: State) => GroupColumn[])[];
  renderGroupsAgain(): void;
  resampling: Resampling;
  confusion(store: Store, view: View): Uint32Array[];
  mostConfused(counts: Uint32Array[], most: number): number[];

  // diagnosis.js, diagnosis_cards.js, plots.js
  diagnosis: Diagnosis;
  why: {
    counted(n: number, what: string): string;
    share(value: number, digits?: number): Cell;
    fill(id: string, head: string[], rows: [name: string, ...cells: Cell[]][]): void;
  };
  openDetection(r: number, d: number): void;
  recallCurves(store: Store, state: State): { r: number; name: string; curve: number[] | null }[];

  // gallery.js, items.js, viewer.js
  order: number[];
  signed(value: number): string;
  focusTile(store: Store, state: State, image: number | null): void;
  neighbour(step: number): { image: number; pick: string | null } | null;
  placeInGallery(): string | null;
  codeOf(store: Store, image: number, entry: Entry): string;
  pickedIn(store: Store, image: number): Entry | null;
  cardOf(store: Store, image: number, entry: Entry): HTMLElement[];
  listItems(
    store: Store,
    image: number,
    geometry: Geometry,
    shown: number[],
    hover: (entry: Entry | null) => void,
  ): void;
  cropAround(boxes: Box[], width: number, height: number): [x: number, y: number, side: number];
  pickOf(store: Store, r: number, item: Item): string;
  itemCaption(store: Store, state: State, item: Item, rival: number | null): { label: string; lines: Child[] };
  paintCrop(store: Store, state: State, item: Item, canvas: HTMLCanvasElement, ratio: number): void;
  zoomed(zoom: Zoom, factor: number, x: number, y: number): Zoom;
  gestures(
    canvas: HTMLCanvasElement,
    told: {
      zoom(): Zoom;
      setZoom(zoom: Zoom): void;
      hover(event: PointerEvent | null): void;
      tap(event: PointerEvent): void;
      swipe(step: number): void;
    },
  ): void;
  repaint(): void;
  paintForPaper(on: boolean): void;
  panes(): Pane[];
}
