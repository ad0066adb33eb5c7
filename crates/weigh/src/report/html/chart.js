// One chart: the static picture, and the same picture of a part of the time.

const SVG = "http://www.w3.org/2000/svg";

function node(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? Math.round(value * 100) / 100 : value);
  }
  if (text !== undefined) made.textContent = text;
  return made;
}

/** The first place in ascending numbers whose number is not below the wanted one. */
function firstFrom(numbers, wanted) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Below this width a chart is drawn anew instead of shrunk: its words must stay readable. */
const NARROW = 640;
const LETTER = 6.2;

class Chart {
  constructor(figure, drawn) {
    const chart = drawn.charts[Number(figure.dataset.place)];
    Object.assign(this, chart, { figure, hidden: new Set() });
    const { unit, steps } = drawn.times[chart.times];
    let sum = 0;
    this.times = steps.map((step) => (sum += step) * unit);
    this.timeline = drawn.timelines[chart.timeline];
    this.stacked = chart.form.startsWith("stack");
    this.back = chart.form.endsWith("rates");
    this.heat = chart.form === "heat";
    this.plot = figure.querySelector(".plot");
    this.svg = figure.querySelector("svg.chart");
    const numbers = (text) => text.split(" ").map(Number);
    const [left, top, width, height] = numbers(this.svg.dataset.plot);
    const [, , fullWidth, fullHeight] = numbers(this.svg.getAttribute("viewBox"));
    this.still = {
      box: { left, top, width, height, fullWidth, fullHeight },
      range: numbers(this.svg.dataset.x),
      top: numbers(this.svg.dataset.y)[1],
      groups: [...this.svg.children].map((group) => [group, [...group.childNodes]]),
    };
    this.overlay = node("g", { class: "cursor" });
    this.svg.append(this.overlay);
    const clip = node("clipPath", { id: `clip-${figure.dataset.place}` });
    this.clip = clip.appendChild(node("rect", {}));
    this.svg.prepend(clip);
    this.draw(null);
  }

  group(name) {
    return this.svg.querySelector(`:scope > g.${name}`);
  }

  get visible() {
    return this.series.filter((one) => !this.hidden.has(one));
  }

  x(time) {
    const [from, to] = this.range;
    return this.box.left + ((time - from) / (to - from || 1)) * this.box.width;
  }

  y(value) {
    return this.box.top + (1 - value / this.top) * this.box.height;
  }

  /** Draws a range of time, or all of it. */
  draw(view) {
    const narrow = this.plot.clientWidth > 0 && this.plot.clientWidth < NARROW;
    this.range = view ?? this.still.range;
    this.box = narrow ? this.narrowed(this.plot.clientWidth) : this.still.box;
    this.svg.setAttribute("viewBox", `0 0 ${this.box.fullWidth} ${this.box.fullHeight}`);
    this.group("series").removeAttribute("transform");
    this.group("series").removeAttribute("clip-path");
    const { left, top, width, height } = this.box;
    for (const [key, value] of Object.entries({ x: left, y: top, width, height })) {
      this.clip.setAttribute(key, value);
    }
    if (!view && !narrow && this.hidden.size === 0) {
      this.top = this.still.top;
      this.still.groups.forEach(([group, children]) => group.replaceChildren(...children));
    } else {
      this.redraw();
    }
  }

  narrowed(fullWidth) {
    const { left, top, width, height, fullWidth: full, fullHeight } = this.still.box;
    return { left, top, height, fullHeight, fullWidth, width: fullWidth - left - (full - left - width) };
  }

  redraw() {
    const { left, top, width, height } = this.box;
    const right = left + width;
    const bottom = top + height;
    this.group("bands").replaceChildren(...this.bands());
    if (this.heat) {
      this.stretchCells();
    } else {
      const ticks = this.valueAxis();
      this.top = ticks.at(-1)[0];
      const rule = (value) => ({ class: "rule", x1: left, x2: right, y1: this.y(value), y2: this.y(value) });
      this.group("grid").replaceChildren(...ticks.map(([value]) => node("line", rule(value))));
      const label = ([value, text]) =>
        node("text", { class: "tick", "text-anchor": "end", x: left - 8, y: this.y(value) + 4 }, text);
      this.group("axis.y").replaceChildren(...ticks.map(label));
      this.group("series").replaceChildren(...this.paths());
    }
    this.group("series").setAttribute("clip-path", `url(#${this.clip.parentNode.id})`);
    this.group("limits").replaceChildren(...this.limitLines());
    this.group("marks").replaceChildren(...this.markLines());
    this.group("peak").replaceChildren(...this.peakDot());
    const times = timeTicks(...this.range, width).flatMap(([value, text]) => {
      const x = this.x(value);
      // The last label would be cut off where the picture ends.
      const anchor = x + text.length * LETTER * 0.5 > this.box.fullWidth ? "end" : "middle";
      return [
        node("line", { class: "tick-line", x1: x, x2: x, y1: bottom, y2: bottom + 4 }),
        node("text", { class: "tick", "text-anchor": anchor, x, y: bottom + 17 }, text),
      ];
    });
    this.group("axis.x").replaceChildren(...times);
  }

  /** Places of values in the range, and of one more on either side. */
  places() {
    const [from, to] = this.range;
    const first = Math.max(0, firstFrom(this.times, from) - 1);
    const last = Math.min(this.times.length - 1, firstFrom(this.times, to));
    return [first, last];
  }

  /** The sum of visible series at a place, or the highest; null where nothing is known. */
  heightAt(place) {
    const values = this.visible.map((one) => one.values[place]).filter((value) => value !== null);
    if (values.length === 0) return null;
    return this.stacked ? values.reduce((a, b) => a + b) : Math.max(...values);
  }

  /** How high the picture is at a place; beyond the range, where its line enters it. */
  heightSeen(place) {
    const height = this.heightAt(place);
    const at = this.times[place];
    const edge = Math.min(Math.max(at, this.range[0]), this.range[1]);
    if (edge === at || height === null) return height ?? 0;
    if (this.back) return at > edge ? height : 0;
    const inner = at < edge ? place + 1 : place - 1;
    const other = inner in this.times ? this.heightAt(inner) : null;
    return other === null ? 0 : height + ((other - height) * (edge - at)) / (this.times[inner] - at);
  }

  valueAxis() {
    const [first, last] = this.places();
    let highest = 0;
    for (let place = first; place <= last; place += 1) {
      highest = Math.max(highest, this.heightSeen(place));
    }
    const near = this.limits.map(([value]) => value).filter((value) => value <= highest * 1.5);
    return valueTicks(this.scale, Math.max(highest, ...near), 5);
  }

  /** Unbroken stretches of places in the range for which something is known. */
  stretches(isKnown) {
    const [first, last] = this.places();
    const found = [];
    for (let place = first, open = false; place <= last; place += 1) {
      const known = isKnown(place);
      if (known && open) found.at(-1).push(place);
      else if (known) found.push([place]);
      open = known;
    }
    return found;
  }

  /** The points of one value: a level has one, a rate holds back to the time before. */
  points(place, value) {
    const times = this.back && place > 0 ? [place - 1, place] : [place];
    return times.map((at) => `${this.x(this.times[at]).toFixed(1)} ${this.y(value).toFixed(1)}`);
  }

  paths() {
    if (this.stacked) return this.areas();
    return this.visible.map(({ colour, values }) => {
      const lines = this.stretches((place) => values[place] !== null).map((places) => {
        const points = places.flatMap((place) => this.points(place, values[place]));
        // A point alone is a dot.
        return `M${points.join("L")}${points.length === 1 ? "h0" : ""}`;
      });
      return node("path", { class: `line c${colour % 8}`, d: lines.join("") });
    });
  }

  areas() {
    const floor = this.times.map(() => 0);
    const stretches = this.stretches((place) => this.heightAt(place) !== null);
    return this.visible.map(({ colour, values }) => {
      const shapes = stretches.map((places) => {
        const below = places.flatMap((place) => this.points(place, floor[place]));
        places.forEach((place) => (floor[place] += values[place] ?? 0));
        const above = places.flatMap((place) => this.points(place, floor[place]));
        return `M${above.join("L")}L${below.reverse().join("L")}Z`;
      });
      return node("path", { class: `area c${colour % 8}`, d: shapes.join("") });
    });
  }

  /** Cells are not drawn again: their colours are the picture's, only their places change. */
  stretchCells() {
    const { box, range } = this.still;
    const scale = ((range[1] - range[0]) / (this.range[1] - this.range[0])) * (this.box.width / box.width);
    const shift = this.x(range[0]) - box.left * scale;
    this.still.groups.forEach(([group, children]) => {
      if (group.matches(".series, .axis.y")) group.replaceChildren(...children);
    });
    // Clipped before it is moved, so it is the part of the picture that shows.
    const [from, to] = this.range.map((time) => box.left + (time / range[1]) * box.width);
    this.clip.setAttribute("x", from);
    this.clip.setAttribute("width", to - from);
    this.group("series").setAttribute("transform", `translate(${shift} 0) scale(${scale} 1)`);
  }

  bands() {
    const { left, top, width, height } = this.box;
    return this.timeline.bands.flatMap(([from, to, depth, name]) => {
      const begin = Math.max(left, this.x(from));
      const end = Math.min(left + width, this.x(to));
      if (end <= begin) return [];
      const y = top;
      const rect = { class: `band d${depth}`, x: begin, y, width: end - begin, height };
      const room = Math.floor((end - begin - 8) / LETTER);
      const label = name.length <= room ? name : room > 3 ? `${name.slice(0, room - 1)}\u2026` : "";
      const text = { class: "band-name", x: begin + 4, y: top - 6 + 12 * depth };
      return label ? [node("rect", rect), node("text", text, label)] : [node("rect", rect)];
    });
  }

  limitLines() {
    const { left, width } = this.box;
    const right = left + width;
    return this.limits.filter(([value]) => value <= this.top).flatMap(([value, name]) => {
      const y = this.y(value);
      return [
        node("line", { class: "limit", x1: left, x2: right, y1: y, y2: y }),
        node("text", { class: "limit-name", "text-anchor": "end", x: right - 4, y: y - 4 }, name),
      ];
    });
  }

  markLines() {
    const { left, top, width, height } = this.box;
    return this.timeline.marks.flatMap(([at, name]) => {
      const x = this.x(at);
      if (x < left || x > left + width) return [];
      const turned = x + name.length * LETTER > left + width;
      const text = { class: "mark-name", x: x + (turned ? -3 : 3), y: top + 12 };
      if (turned) text["text-anchor"] = "end";
      return [
        node("line", { class: "mark", x1: x, x2: x, y1: top, y2: top + height }),
        node("text", text, name),
      ];
    });
  }

  peakDot() {
    if (!this.peak || this.heat) return [];
    const [from, to] = this.range;
    let best = null;
    this.times.forEach((at, place) => {
      const value = from <= at && at <= to ? this.heightAt(place) : null;
      if (value !== null && (best === null || value > best.value)) best = { at, value };
    });
    if (best === null) return [];
    const [x, y] = [this.x(best.at), this.y(best.value)];
    const turned = x > this.box.left + this.box.width - 80;
    const text = { class: "peak-name", x: x + (turned ? -7 : 7), y: Math.max(y - 5, this.box.top + 10) };
    if (turned) text["text-anchor"] = "end";
    return [
      node("circle", { class: "peak-dot", cx: x, cy: y, r: 3.5 }),
      node("text", text, shown(this.scale, best.value)),
    ];
  }

  /** The place of the value that holds at a time, or is nearest to it. */
  placeAt(time) {
    const next = firstFrom(this.times, time);
    const last = this.times.length - 1;
    if (this.back) return Math.min(next, last);
    if (this.heat) return this.times[next] === time ? next : Math.max(0, next - 1);
    const nearer = next > 0 && (next > last || time - this.times[next - 1] <= this.times[next] - time);
    return nearer ? next - 1 : next;
  }

  /** Where a time is measured: rates hold for a while, levels are of a moment. */
  snapped(time) {
    return this.back || this.heat ? time : this.times[this.placeAt(time)] ?? time;
  }

  /** What the visible series were at a time: their names and values, the upper first. */
  readings(time, row) {
    const place = this.placeAt(time);
    const one = (series) => ({ series, name: series.name, value: series.values[place] ?? null });
    if (this.heat) return row === undefined ? this.extremes(place) : [one(this.series[row])];
    const readings = this.visible.map(one);
    if (!this.stacked) return readings;
    readings.reverse();
    if (readings.length > 1) readings.push({ name: "together", value: this.heightAt(place) });
    return readings;
  }

  /** A heat map has too many rows to be read out: its highest and lowest. */
  extremes(place) {
    const known = this.series.filter((one) => one.values[place] !== null);
    known.sort((a, b) => b.values[place] - a.values[place]);
    const ends = known.length > 1 ? [known[0], known.at(-1)] : known;
    return ends.map((one) => ({ series: one, name: one.name, value: one.values[place] }));
  }

  showCursor(time) {
    const { left, top, width, height } = this.box;
    const x = time === null ? NaN : this.x(time);
    if (!(x >= left - 0.5 && x <= left + width + 0.5)) {
      this.overlay.replaceChildren();
      return;
    }
    const made = [node("line", { class: "cursor-line", x1: x, x2: x, y1: top, y2: top + height })];
    if (!this.heat && !this.stacked) {
      const at = this.back ? x : this.x(this.snapped(time));
      for (const { series, value } of this.readings(time)) {
        if (value === null) continue;
        made.push(node("circle", { class: `cursor-dot c${series.colour % 8}`, cx: at, cy: this.y(value), r: 3.5 }));
      }
    }
    this.overlay.replaceChildren(...made);
  }
}
