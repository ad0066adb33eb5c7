// One chart: the static SVG of the page, and the same redrawn for a range of time.

/** The index of the first number not below the wanted one, in ascending numbers. */
function firstFrom(numbers, wanted) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Below this width values are shown above the curves, not beside the cursor. */
const NARROW = 640;

/** A chart is redrawn for another width, and not scaled: its text must stay readable. */
const SAME_WIDTH = 3;

/** The height of an enlarged chart: the window, less its title, legend and tools. */
const largeHeight = () => Math.max(240, Math.min(innerHeight * 0.6, 640));

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
    this.held = chart.form === "lines" || chart.form === "stack";
    this.heat = chart.form === "heat";
    this.plot = figure.querySelector(".plot");
    this.svg = figure.querySelector("svg.chart");
    this.group = (name) => this.svg.querySelector(`:scope > g.${name}`);
    this.x = (time) => this.box.left + ((time - this.range[0]) / (this.range[1] - this.range[0])) * this.box.width;
    this.y = (value) => this.box.top + (1 - value / this.top) * this.box.height;
    const numbers = (text) => text.split(" ").map(Number);
    const [left, top, width, height] = numbers(this.svg.dataset.plot);
    const [, , fullWidth, fullHeight] = numbers(this.svg.getAttribute("viewBox"));
    this.still = {
      box: { left, top, width, height, fullWidth, fullHeight },
      range: numbers(this.svg.dataset.x),
      top: numbers(this.svg.dataset.y)[1],
      groups: [...this.svg.querySelectorAll(":scope > g")].map((group) => [group, [...group.childNodes]]),
    };
    this.clip = node("rect", {});
    const clip = node("clipPath", { id: `clip-${figure.dataset.place}` });
    clip.append(this.clip);
    this.overlay = node("g", { class: "cursor" });
    this.svg.prepend(clip);
    this.svg.append(this.overlay);
    this.draw(null);
  }

  get visible() {
    return this.series.filter((one) => !this.hidden.has(one));
  }

  /** Draws a range of time, or all of it. */
  draw(view) {
    const { box, range, top, groups } = this.still;
    const room = this.plot.clientWidth;
    this.narrow = room > 0 && room < NARROW;
    this.whole = !view && this.hidden.size === 0;
    this.range = view ?? range;
    const large = this.figure.closest("dialog") !== null;
    const same = !large && (room === 0 || Math.abs(room - box.fullWidth) <= SAME_WIDTH);
    this.box = same ? box : this.resized(room, large && !this.heat ? largeHeight() : box.fullHeight);
    const { fullWidth: width, fullHeight: height } = this.box;
    set(this.svg, { width, height, viewBox: `0 0 ${width} ${height}` });
    this.group("series").removeAttribute("clip-path");
    this.group("series").removeAttribute("transform");
    this.group("means")?.removeAttribute("transform");
    if (this.whole && same) {
      this.top = top;
      groups.forEach(([group, children]) => group.replaceChildren(...children));
    } else {
      this.redraw();
    }
  }

  /** The same box in another size: the margins stay. */
  resized(fullWidth, fullHeight) {
    const { box } = this.still;
    const width = fullWidth - (box.fullWidth - box.width);
    const height = fullHeight - (box.fullHeight - box.height);
    return { ...box, fullWidth, fullHeight, width, height };
  }

  redraw() {
    const { left, top, width, height } = this.box;
    set(this.clip, { x: left, y: top, width, height });
    const put = (group, nodes) => this.group(group).replaceChildren(...nodes);
    if (this.heat) {
      this.stretchCells();
    } else {
      const ticks = valueTicks(this.scale, this.highestSeen(), 5);
      this.top = ticks.at(-1)[0];
      put("grid", ticks.map(([value]) => line("rule", left, this.y(value), left + width, this.y(value))));
      put("axis.y", ticks.map(([value, text]) => words("tick", left - 6, this.y(value) + 4, "end", text)));
      put("series", this.stacked ? this.areas() : this.lines());
      const marked = this.markedPoint();
      put("peak", marked ? drawPeak(this, marked, this.x, this.y) : []);
      put("limits", drawLimits(this, this.y));
    }
    this.group("series").setAttribute("clip-path", `url(#${this.clip.parentNode.id})`);
    put("bands", drawBands(this, this.x));
    put("marks", drawMarks(this, this.x));
    put("axis.x", drawTimes(this, this.x));
  }

  /** Indices of values in the range, and one more on either side. */
  places() {
    const first = Math.max(0, firstFrom(this.times, this.range[0]) - 1);
    const last = Math.min(this.times.length - 1, firstFrom(this.times, this.range[1]));
    return Array.from({ length: last - first + 1 }, (_, place) => first + place);
  }

  /** The sum or maximum of visible series at an index; null where unknown. */
  heightAt(place) {
    const values = this.visible.map((one) => one.values[place] ?? null).filter((value) => value !== null);
    if (values.length === 0) return null;
    return this.stacked ? values.reduce((a, b) => a + b) : Math.max(...values);
  }

  /** The height of the curves at an index; outside the range, where they enter it. */
  heightSeen(place) {
    const height = this.heightAt(place);
    const at = this.times[place];
    const edge = Math.min(Math.max(at, this.range[0]), this.range[1]);
    if (edge === at || height === null) return height ?? 0;
    if (this.back) return at > edge ? height : 0;
    if (this.held) return at < edge ? height : 0;
    const inner = at < edge ? place + 1 : place - 1;
    const other = this.heightAt(inner);
    return other === null ? 0 : height + ((other - height) * (edge - at)) / (this.times[inner] - at);
  }

  /** Limits far above the visible part would flatten the curves. */
  highestSeen() {
    const limits = this.limits.map(([value]) => value);
    if (this.whole) return Math.max(this.highest ?? 0, ...limits);
    const highest = Math.max(0, ...this.places().map((place) => this.heightSeen(place)));
    return Math.max(highest, ...limits.filter((value) => value <= highest * 1.5));
  }

  /** The marked peak, or the maximum of a zoomed range: time and value. */
  markedPoint() {
    if (!this.peak || this.whole) return this.peak;
    const inside = (at) => at >= this.range[0] && at <= this.range[1];
    const points = this.times.map((at, place) => [at, inside(at) ? this.heightAt(place) : null, null]);
    const known = points.filter(([, value]) => value !== null);
    return known.reduce((best, next) => (best && best[1] >= next[1] ? best : next), null);
  }

  /** Indices in the range with known values, in pieces between gaps. */
  pieces(values) {
    const pieces = [];
    for (const place of this.places()) {
      const known = (at) => (values[at] ?? null) !== null;
      if (!known(place)) continue;
      if (pieces.at(-1)?.at(-1) === place - 1) pieces.at(-1).push(place);
      else pieces.push([place]);
      pieces.at(-1).alone = !known(place - 1) && !known(place + 1);
    }
    return pieces;
  }

  /** The points of a piece: a rate covers the interval before its time, a gauge is carried forward. */
  points(piece, value) {
    return piece.flatMap((place) => {
      const times = [this.times[place]];
      if (this.back) times.unshift(this.times[place - 1] ?? 0);
      // A single sample is no line: it is carried forward to the next time.
      else if (this.held || piece.alone) times.push(this.times[place + 1] ?? Math.max(this.timeline.end, times[0]));
      return times.map((at) => `${this.x(at).toFixed(1)} ${this.y(value(place)).toFixed(1)}`);
    });
  }

  lines() {
    return this.visible.map(({ colour, values }) => {
      const paths = this.pieces(values).map((piece) => `M${this.points(piece, (place) => values[place]).join("L")}`);
      return node("path", { class: `line c${colour}`, d: paths.join("") });
    });
  }

  areas() {
    const floor = this.times.map(() => 0);
    // The outline of a zero step would be a line on top of the others.
    const seen = (value) => (value === 0 && (this.held || this.back) ? null : value);
    return this.visible.map(({ colour, values }) => {
      const paths = this.pieces(values.map(seen)).map((piece) => {
        const below = this.points(piece, (place) => floor[place]).reverse();
        piece.forEach((place) => (floor[place] += values[place]));
        return `M${[...this.points(piece, (place) => floor[place]), ...below].join("L")}Z`;
      });
      return node("path", { class: `area c${colour}`, d: paths.join("") });
    });
  }

  /** Cells are not redrawn: their colours stay, only their positions change. */
  stretchCells() {
    const { box, range } = this.still;
    const perSecond = (frame, [from, to]) => frame.width / (to - from);
    const scale = perSecond(this.box, this.range) / perSecond(box, range);
    const [from, to] = this.range.map((time) => box.left + time * perSecond(box, range));
    // Clipped before it is moved: only this part of the old drawing shows.
    set(this.clip, { x: from, width: to - from });
    const move = `translate(${this.box.left - from * scale} 0) scale(${scale} 1)`;
    this.group("series").setAttribute("transform", move);
    // The means are of all of the time, whatever part of it is shown.
    set(this.group("means"), { transform: `translate(${this.box.width - box.width} 0)` });
  }

  /** The index of the value at a time, or nearest to it. */
  placeAt(time) {
    const next = firstFrom(this.times, time);
    const last = this.times.length - 1;
    if (this.back) return Math.min(next, last);
    if (this.heat || this.held) return this.times[next] === time ? next : next - 1;
    return next > last || time - this.times[next - 1] <= this.times[next] - time ? next - 1 : next;
  }

  /** The time of a value: rates and gauges cover an interval, counters a point in time. */
  snapped(time) {
    return this.back || this.heat || this.held ? time : (this.times[this.placeAt(time)] ?? time);
  }

  /** Names and values of the visible series at a time, the topmost first. */
  readings(time, row) {
    const place = this.placeAt(time);
    const one = (series) => ({ name: series.name, colour: series.colour, value: series.values[place] ?? null });
    // A heat map has too many rows: only the one pointed at, or the highest.
    if (this.heat && row !== undefined) return [one(this.series[row])];
    const readings = this.visible.map(one);
    if (this.heat) return readings.sort((a, b) => b.value - a.value).slice(0, 1);
    if (!this.stacked || readings.length < 2) return readings;
    return [...readings.reverse(), { name: "total", value: this.heightAt(place) }];
  }

  showCursor(time) {
    const { left, top, width, height } = this.box;
    const x = time === null ? NaN : this.x(time);
    if (!(x >= left - 0.5 && x <= left + width + 0.5)) {
      this.overlay.replaceChildren();
      return;
    }
    const at = this.x(this.snapped(time));
    const known = this.heat || this.stacked ? [] : this.readings(time).filter(({ value }) => value !== null);
    const dot = ({ colour, value }) => ({ class: `cursor-dot c${colour}`, cx: at, cy: this.y(value), r: 3.5 });
    this.overlay.replaceChildren(
      line("cursor-line", x, top, x, top + height),
      ...known.map((reading) => node("circle", dot(reading))),
    );
  }
}
