// All charts of the page together: one range of time, one cursor.

class Together {
  constructor(charts) {
    Object.assign(this, { charts, view: null, cursor: null, pinned: null, active: null, row: undefined });
    /** What else follows the range and the cursor: the timeline, the address. */
    this.followers = [];
    this.end = Math.max(...charts.map((chart) => chart.still.range[1]));
    this.shortest = Math.max(this.end * 1e-4, 1e-5);
    this.waiting = false;
    this.readout = element("div", "readout");
    this.readout.setAttribute("aria-hidden", "true");
    this.range = element("p", "range");
    this.range.hidden = true;
    this.link = copyButton("Copy link", () => location.href);
    this.range.append(element("span"), this.link, button("Show all", () => this.reset()));
    document.querySelector("nav.contents .inside").append(this.range);
    charts.forEach((chart) => this.listen(chart));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.escape(event);
    });
    const resized = new ResizeObserver(() => this.changed(true));
    charts.forEach((chart) => resized.observe(chart.plot));
  }

  /** Redraws in the next frame: the ranges, when they changed, and the cursor. */
  changed(redraw) {
    this.stale ||= redraw;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.stale) this.charts.forEach((chart) => chart.draw(this.view));
      if (this.stale) this.showRange();
      this.stale = false;
      this.charts.forEach((chart) => chart.showCursor(this.cursor));
      this.followers.forEach((follower) => follower.follow(this));
      this.showReadout();
    });
  }

  showRange() {
    this.range.hidden = this.view === null && this.pinned === null;
    const words = [];
    if (this.view) {
      const [from, to] = this.view.map((time) => pointed(time, this.view[1] - this.view[0]));
      words.push(`${from} to ${to}`);
    }
    if (this.pinned !== null) words.push(`at ${pointed(this.pinned, this.end)}`);
    this.range.firstChild.textContent = words.join(", ");
  }

  /** Keeps the cursor at a time, whatever the pointer does. */
  pin(time) {
    this.pinned = time;
    this.point(null, null);
    this.changed(true);
  }

  look(from, to) {
    const span = Math.min(Math.max(to - from, this.shortest), this.end);
    const begin = Math.min(Math.max(from, 0), this.end - span);
    this.show(span >= this.end * (1 - 1e-9) ? null : [begin, begin + span]);
  }

  reset() {
    this.pinned = null;
    this.cursor = null;
    this.show(null);
  }

  /** Sets the range of the charts at once: the next pointer event may come before the frame. */
  show(view) {
    this.view = view;
    this.charts.forEach((chart) => (chart.range = view ?? chart.still.range));
    this.changed(true);
  }

  /** Zooms so that a time stays where it is. */
  zoom(factor, chart, around) {
    const [from, to] = chart.range;
    const still = around ?? this.cursor ?? (from + to) / 2;
    this.look(still - (still - from) * factor, still + (to - still) * factor);
  }

  point(chart, time, row) {
    Object.assign(this, { active: chart, cursor: time ?? this.pinned, row });
    this.changed(false);
  }

  escape(event) {
    if (this.drag) {
      this.endDrag();
      event.preventDefault();
    } else if (document.querySelector("dialog[open]")) {
      // It closes by itself.
    } else if (this.view || this.pinned !== null) {
      this.reset();
    } else {
      this.point(null, null);
    }
  }

  showReadout() {
    const chart = this.active;
    if (!chart?.plot.querySelector(".cursor-line")) {
      this.readout.remove();
      return;
    }
    const time = element("p", "", pointed(this.cursor, chart.range[1] - chart.range[0]));
    const list = element("ul");
    for (const { name, colour, value } of chart.readings(this.cursor, this.row)) {
      const item = element("li");
      const key = element("i", chart.heat || colour === undefined ? "" : `c${colour}`);
      item.append(key, element("span", "", name), element("b", "", shown(chart.scale, value)));
      list.append(item);
    }
    this.readout.replaceChildren(time, list);
    chart.plot.append(this.readout);
    const scale = chart.svg.clientWidth / chart.box.fullWidth;
    const x = chart.x(this.cursor) * scale;
    const room = chart.plot.clientWidth - this.readout.offsetWidth;
    const beside = x + 14 <= room ? x + 14 : x - 14 - this.readout.offsetWidth;
    this.readout.style.left = `${Math.min(Math.max(beside, 0), room)}px`;
    // Where there is little space it is above the curves, over the legend.
    const above = chart.narrow ? -this.readout.offsetHeight - 2 : 6;
    this.readout.style.top = `${chart.box.top * scale + above}px`;
  }

  /** Announces the values under the cursor to screen readers. */
  say() {
    const chart = this.active;
    const readings = chart.readings(this.cursor).map(({ name, value }) => `${name} ${shown(chart.scale, value)}`);
    live.textContent = `${pointed(this.cursor, chart.range[1] - chart.range[0])}: ${readings.join(", ")}`;
  }

  listen(chart) {
    const { plot, svg } = chart;
    const time = (event) => {
      const { left, width } = svg.getBoundingClientRect();
      const x = ((event.clientX - left) / width) * chart.box.fullWidth;
      const share = Math.min(Math.max((x - chart.box.left) / chart.box.width, 0), 1);
      return chart.range[0] + share * (chart.range[1] - chart.range[0]);
    };
    const row = (event) => {
      const { top, height } = svg.getBoundingClientRect();
      const y = ((event.clientY - top) / height) * chart.box.fullHeight;
      const share = Math.min(Math.max((y - chart.box.top) / chart.box.height, 0), 0.999);
      return chart.heat ? Math.floor(share * chart.series.length) : undefined;
    };
    const fingers = new Map();
    const pointAt = (event) => this.point(chart, chart.snapped(time(event)), row(event));

    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-roledescription", "chart");
    plot.setAttribute("aria-label", svg.getAttribute("aria-label"));
    plot.setAttribute("aria-describedby", "keys");
    plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) {
        this.drag = { chart, from: time(event), x: event.clientX, pointer: event.pointerId };
      } else if (event.pointerType !== "mouse") {
        fingers.set(event.pointerId, { time: time(event), x: event.clientX });
        pointAt(event);
      }
    });
    plot.addEventListener("pointermove", (event) => {
      if (fingers.size === 2 && fingers.has(event.pointerId)) {
        fingers.get(event.pointerId).x = event.clientX;
        this.pinch(chart, [...fingers.values()]);
        return;
      }
      if (event.pointerType !== "mouse" && !fingers.has(event.pointerId)) return;
      pointAt(event);
      if (this.drag?.chart === chart && Math.abs(event.clientX - this.drag.x) > 4) {
        // Only now: a captured pointer takes clicks away from what is below it.
        plot.setPointerCapture(event.pointerId);
        this.select(chart, this.drag.from, time(event));
      }
    });
    const lift = (event) => {
      fingers.delete(event.pointerId);
      const { drag } = this;
      if (drag?.chart !== chart) return;
      this.endDrag();
      if (event.type !== "pointerup") return;
      if (drag.to === undefined) this.clicked?.(chart, drag.from);
      else this.look(Math.min(drag.from, drag.to), Math.max(drag.from, drag.to));
    };
    plot.addEventListener("pointerup", lift);
    plot.addEventListener("pointercancel", lift);
    plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.point(null, null);
    });
    plot.addEventListener("dblclick", () => this.reset());
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -100), 100) * 0.004), chart, time(event));
    }, { passive: false });
    plot.addEventListener("keydown", (event) => this.press(chart, event));
    plot.addEventListener("blur", () => this.point(null, null));
  }

  press(chart, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = chart.times.filter((at) => at >= chart.range[0] && at <= chart.range[1]);
    const step = (by) => {
      const here = this.active === chart && this.cursor !== null;
      const last = chart.times.length - 1;
      const place = here ? chart.placeAt(this.cursor) + by * (event.shiftKey ? 10 : 1) : null;
      this.keyTo(chart, place === null ? inside.at(by > 0 ? 0 : -1) : chart.times[Math.min(Math.max(place, 0), last)]);
    };
    const keys = {
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      Home: () => this.keyTo(chart, inside[0]),
      End: () => this.keyTo(chart, inside.at(-1)),
      "+": () => this.zoom(0.5, chart),
      "=": () => this.zoom(0.5, chart),
      "-": () => this.zoom(2, chart),
      0: () => this.reset(),
      Enter: () => this.clicked?.(chart, this.active === chart ? this.cursor : null),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }

  /** Moves the cursor, and the range along with it. */
  keyTo(chart, time) {
    if (time === undefined) return;
    const [from, to] = chart.range;
    if (this.view && (time < from || time > to)) {
      const shift = time < from ? time - from : time - to;
      this.look(from + shift, to + shift);
    }
    this.point(chart, time);
    this.say();
  }

  pinch(chart, [one, other]) {
    const { left, width } = chart.svg.getBoundingClientRect();
    const scale = width / chart.box.fullWidth;
    const perPixel = (other.time - one.time) / (other.x - one.x);
    if (!(perPixel > 0) || !Number.isFinite(perPixel)) return;
    const from = one.time - (one.x - left - chart.box.left * scale) * perPixel;
    this.look(from, from + chart.box.width * scale * perPixel);
  }

  select(chart, from, to) {
    this.drag.to = to;
    this.drag.shade ??= chart.svg.appendChild(node("rect", { class: "selection" }));
    const [begin, end] = [Math.min(from, to), Math.max(from, to)].map((at) => chart.x(at));
    const { top, height } = chart.box;
    set(this.drag.shade, { x: begin, width: end - begin, y: top, height });
  }

  endDrag() {
    this.drag.shade?.remove();
    this.drag = undefined;
  }
}
