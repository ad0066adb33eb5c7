// One chart, enlarged: a dialog that holds its figure until it is closed.

const ENLARGE = "M6 1H1v5M1 1l6 6M10 15h5v-5M15 15l-6-6";

class Large {
  constructor(charts, together) {
    Object.assign(this, { charts, together, chart: null });
    this.dialog = element("dialog");
    const tools = element("div", "tools");
    const tool = (text, act) => {
      const made = button(text, act);
      made.className = "tool";
      return made;
    };
    const link = copyButton("Copy link", () => location.href);
    link.className = "tool";
    tools.append(
      tool("Previous", () => this.step(-1)),
      tool("Next", () => this.step(1)),
      element("span", "gap"),
      tool("Download SVG", () => download(`${this.chart.name}.svg`, "image/svg+xml", chartPicture(this.chart))),
      tool("Download CSV", () => download(`${this.chart.name}.csv`, "text/csv", chartData(this.chart))),
      link,
      tool("Close", () => this.dialog.close()),
    );
    this.dialog.append(tools);
    document.body.append(this.dialog);
    this.dialog.addEventListener("close", () => this.putBack());
    // A click beside the dialog is on the dialog itself.
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    charts.forEach((chart) => this.addButton(chart));
    together.clicked = (chart, time) => {
      if (chart !== this.chart) this.show(chart);
      else if (time !== null) together.pin(time);
    };
  }

  /** The title of a chart enlarges it, and closes it again. */
  addButton(chart) {
    const title = chart.figure.querySelector("h3");
    const made = button("", () => (this.chart === chart ? this.dialog.close() : this.show(chart)));
    const icon = node("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
    icon.append(node("path", { d: ENLARGE }));
    made.className = "enlarge";
    made.title = "Enlarge";
    made.append(element("span", "", title.textContent), icon);
    title.replaceChildren(made);
  }

  show(chart) {
    this.takeBack();
    this.chart = chart;
    this.dialog.setAttribute("aria-label", chart.title);
    // What is around it stays where it is.
    this.gap = element("div");
    this.gap.style.height = `${chart.figure.offsetHeight}px`;
    chart.figure.replaceWith(this.gap);
    this.dialog.append(chart.figure);
    if (!this.dialog.open) this.dialog.showModal();
    chart.plot.focus();
    this.together.changed(true);
  }

  takeBack() {
    if (!this.chart) return;
    this.gap.replaceWith(this.chart.figure);
    this.chart = null;
  }

  putBack() {
    const { chart } = this;
    this.takeBack();
    chart?.plot.focus({ preventScroll: true });
    this.together.point(null, null);
    this.together.changed(true);
  }

  step(by) {
    const place = this.charts.indexOf(this.chart) + by;
    this.show(this.charts[(place + this.charts.length) % this.charts.length]);
  }
}
