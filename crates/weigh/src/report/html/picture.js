// Draws a chart with the same groups and classes as the static SVG of the page.

const SVG = "http://www.w3.org/2000/svg";

function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, typeof value === "number" ? Math.round(value * 10) / 10 : value);
  }
  return element;
}

function node(name, attributes, text = "") {
  const made = set(document.createElementNS(SVG, name), attributes);
  made.textContent = text;
  return made;
}

const line = (kind, x1, y1, x2, y2) => node("line", { class: kind, x1, y1, x2, y2 });
const words = (kind, x, y, anchor, text) => node("text", { class: kind, x, y, "text-anchor": anchor }, text);

/** The font size of labels. */
const LETTER = 11;

/** The approximate width of text. */
function widthOf(text) {
  const letter = (c) => (/[iljtfr .,:'|()]/.test(c) ? 0.36 : /[mwMW@%]/.test(c) ? 0.95 : c < "\u0080" ? 0.63 : 1);
  return [...text].reduce((sum, c) => sum + letter(c), 0) * LETTER;
}

/** As much of a name as fits; empty when that is too little. */
function fitting(name, room) {
  if (widthOf(name) <= room) return name;
  const letters = lettersIn(room);
  return letters >= FEWEST ? `${[...name].slice(0, letters - 1).join("").trimEnd()}\u2026` : "";
}

/** With fewer letters a name is not shown. */
const FEWEST = 3;

/** How many letters fit. */
function lettersIn(room) {
  return Math.floor(room / (0.63 * LETTER));
}

/** The begin and the end of a name. */
function cutInside(name, letters) {
  const all = [...name];
  if (letters < FEWEST || all.length <= letters) return letters < FEWEST ? "" : name;
  const first = Math.floor(((letters - 1) * 2) / 5);
  const [begin, end] = [all.slice(0, first), all.slice(all.length - (letters - 1 - first))];
  return `${begin.join("").trimEnd()}\u2026${end.join("").trimStart()}`;
}

/** The height of a row of labels above the curves. */
const ROW = 14;

/** How much wider bold text is. */
const BOLD = 1.1;

/** A narrower band has no outline. */
const THIN = 4;

function bandRows({ bands }) {
  return Math.max(0, ...bands.map(([, , depth]) => depth + 1));
}

function drawBands({ box, timeline }, x) {
  const rows = bandRows(timeline);
  const right = box.left + box.width;
  const seen = timeline.bands
    .map(([from, to, depth, name]) => ({ from: Math.max(box.left, x(from)), to: Math.min(right, x(to)), depth, name }))
    .filter(({ from, to }) => to >= box.left && from <= right);
  const top = (depth) => box.top - (rows - depth) * ROW;
  const rectangles = seen.map(({ from, to, depth }) => {
    const y = top(depth);
    const size = { width: Math.max(to - from, 0.5), height: box.top + box.height - y };
    const thin = to - from < THIN ? " thin" : "";
    return node("rect", { class: `band d${depth}${thin}`, x: from, y, ...size });
  });
  const names = Array.from({ length: rows }, (_, depth) =>
    placed(seen.filter((band) => band.depth === depth), box.left, right)
      .map(([at, name]) => words("band-name", at, top(depth) + 11, "start", name)));
  return [...rectangles, ...names.flat()];
}

/** Space between two names, and between a name and the edge of its band. */
const BETWEEN = 8;
const EDGE = 3;

/**
 * Where names go, from left to right. One that is wider than its band reaches into the band after
 * or before it, as far as the name there leaves space; else it is cut in the middle, because names
 * of phases often differ at their end.
 */
function placed(spans, left, right) {
  let free = left;
  return spans.flatMap(({ from, to, name }, place) => {
    const [begin, width] = [Math.max(from + EDGE, free), widthOf(name)];
    const next = spans[place + 1];
    const reach = next ? Math.min(next.to, right) - widthOf(next.name) - BETWEEN - EDGE : right;
    const before = to - EDGE - width;
    let found = [begin, name];
    if (begin + width > Math.max(reach, to) - EDGE) {
      found = before >= free ? [before, name] : [begin, cutInside(name, lettersIn(to - EDGE - begin))];
    }
    if (!found[1]) return [];
    free = found[0] + widthOf(found[1]) + BETWEEN;
    return [found];
  });
}

function drawMarks({ box, timeline }, x) {
  const top = box.top - (bandRows(timeline) + 1) * ROW;
  const right = box.left + box.width;
  let free = -Infinity;
  return timeline.marks.flatMap(([time, text]) => {
    const at = x(time);
    if (at < box.left || at > right) return [];
    const made = [line("mark", at, top, at, box.top + box.height)];
    const label = at < free ? "" : fitting(text, Math.min(right - at - 4, 160));
    if (!label) return made;
    free = at + widthOf(label) + 8;
    return [...made, words("mark-name", at + 3, top + 11, "start", label)];
  });
}

function drawLimits({ box, limits, scale, top }, y) {
  const right = box.left + box.width;
  return limits.filter(([value]) => value <= top).flatMap(([value, name]) => {
    const at = y(value);
    return [
      line("limit", box.left, at, right, at),
      words("limit-name", right - 4, besideLimit(box, at), "end", `${name} ${shown(scale, value)}`),
    ];
  });
}

/** Above the line, unless that is outside the chart. */
function besideLimit(box, at) {
  return at - box.top < ROW ? at + 13 : at - 4;
}

/** When a peak was: a time, or an interval where only that is known. */
function peakTime(at, after) {
  if (after === null) return `at ${seconds(at)}`;
  return after > 0 ? `between ${seconds(after)} and ${seconds(at)}` : `before ${seconds(at)}`;
}

function drawPeak({ box, scale, limits }, [at, value, after], x, y) {
  const left = x(at) < box.left + box.width / 2;
  const space = (left ? box.left + box.width - x(at) : x(at) - box.left) - 7;
  const whole = `${shown(scale, value)} ${peakTime(at, after)}`;
  // When it was is in the caption, too.
  const text = widthOf(whole) * BOLD <= space ? whole : shown(scale, value);
  const above = Math.max(y(value) - 5, box.top + 10);
  // Below the dot where a limit's label is in the way.
  const taken = limits.some(([limit]) => Math.abs(besideLimit(box, y(limit)) - above) < ROW);
  const place = [x(at) + (left ? 7 : -7), taken ? y(value) + 18 : above];
  return [
    after === null
      ? node("circle", { class: "peak-dot", cx: x(at), cy: y(value), r: 3.5 })
      : line("peak-span", x(after), y(value), x(at), y(value)),
    words("peak-name", ...place, left ? "start" : "end", text),
  ];
}

function drawTimes({ box, range }, x) {
  const [right, bottom] = [box.left + box.width, box.top + box.height];
  const ticks = timeTicks(...range, box.width).flatMap(([value, text]) => {
    const at = x(value);
    // The last one would be cut off at the edge of the chart.
    const [place, anchor] = at > right - 20 ? [at + 14, "end"] : [at, "middle"];
    return [line("tick-line", at, bottom, at, bottom + 4), words("tick", place, bottom + 17, anchor, text)];
  });
  return [line("tick-line", box.left, bottom, right, bottom), ...ticks];
}
