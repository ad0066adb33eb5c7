// The timeline of phases and processes: it follows the range and the cursor of the charts.

class TimelineView {
  constructor(box, together) {
    Object.assign(this, { box, together, end: Number(box.dataset.end), drag: null });
    this.axis = box.querySelector(".axis .track");
    this.now = element("span", "now");
    this.now.hidden = true;
    this.chosen = element("span", "chosen");
    this.chosen.hidden = true;
    box.append(this.now, this.chosen);
    box.addEventListener("pointermove", (event) => this.move(event));
    box.addEventListener("pointerdown", (event) => {
      const isMouse = event.pointerType === "mouse" && event.button === 0;
      if (isMouse && event.target.closest(".track")) this.drag = { from: this.time(event), x: event.clientX };
    });
    box.addEventListener("pointerup", () => this.lift());
    box.addEventListener("pointerleave", () => {
      this.drag = null;
      this.chosen.hidden = true;
      together.point(null, null);
    });
    // The end of a drag is no click on a row.
    box.addEventListener("click", (event) => {
      if (this.dragged) event.preventDefault();
      this.dragged = false;
    }, true);
  }

  get range() {
    return this.together.view ?? [0, this.end];
  }

  /** The time under the pointer. */
  time(event) {
    const { left, width } = this.axis.getBoundingClientRect();
    const [from, to] = this.range;
    return from + Math.min(Math.max((event.clientX - left) / width, 0), 1) * (to - from);
  }

  /** Where a time is, from the left edge of the box. */
  x(time) {
    const { left, width } = this.axis.getBoundingClientRect();
    const [from, to] = this.range;
    return left - this.box.getBoundingClientRect().left + ((time - from) / (to - from)) * width;
  }

  move(event) {
    if (!event.target.closest(".track")) return;
    const time = this.time(event);
    this.together.point(null, time);
    if (!this.drag || Math.abs(event.clientX - this.drag.x) < 5) return;
    this.drag.to = time;
    const [begin, end] = [this.drag.from, time].sort((a, b) => a - b).map((at) => this.x(at));
    this.chosen.hidden = false;
    this.chosen.style.left = `${begin}px`;
    this.chosen.style.width = `${end - begin}px`;
  }

  lift() {
    const { drag } = this;
    this.drag = null;
    this.chosen.hidden = true;
    if (drag?.to === undefined) return;
    this.dragged = true;
    this.together.look(Math.min(drag.from, drag.to), Math.max(drag.from, drag.to));
  }

  /** Shows the range and the cursor of the charts. */
  follow({ cursor }) {
    const [from, to] = this.range;
    if (from !== this.from || to !== this.to) {
      Object.assign(this, { from, to });
      this.box.style.setProperty("--from", from);
      this.box.style.setProperty("--span", to - from);
    }
    const width = this.axis.clientWidth;
    if (width !== this.width || this.shown !== `${from} ${to}`) {
      Object.assign(this, { width, shown: `${from} ${to}` });
      this.axis.replaceChildren(...timeTicks(from, to, width).map(([at, label]) => {
        const tick = element("span", at > to - (to - from) * 0.03 ? "last" : "", label);
        tick.style.setProperty("--a", at);
        return tick;
      }));
    }
    this.now.hidden = cursor === null || cursor < from || cursor > to;
    if (!this.now.hidden) this.now.style.left = `${this.x(cursor)}px`;
  }
}
