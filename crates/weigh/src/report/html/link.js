// The address of the page: `#t=10,20` is a range of seconds, `#t=10` a moment, `chart=memory` the
// enlarged chart. Times are written as in media fragments (W3C).

class PageLink {
  constructor(charts, together, large) {
    Object.assign(this, { charts, together, large });
    addEventListener("hashchange", () => this.read());
    this.read();
    together.followers.push(this);
  }

  /** What the address asks for. */
  read() {
    const asked = new URLSearchParams(location.hash.slice(1));
    if (!asked.has("t") && !asked.has("chart")) return;
    this.written = location.hash;
    const numbers = (asked.get("t") ?? "").split(",").map((text) => (text === "" ? NaN : Number(text)));
    const [from, to] = numbers.map((time) => (Number.isFinite(time) && time >= 0 ? time : null));
    const { together } = this;
    if (from !== null && to > from) together.look(from, to);
    else together.show(null);
    together.pin(from !== null && to === undefined ? Math.min(from, together.end) : null);
    const chart = this.charts.find(({ name }) => name === asked.get("chart"));
    if (chart) this.large.show(chart);
    else if (together.pinned !== null) document.querySelector("figure[data-place]").scrollIntoView({ block: "nearest" });
  }

  /** The address of what is shown. */
  get hash() {
    const { view, pinned } = this.together;
    const round = (time) => Number(time.toPrecision(7));
    const parts = [];
    if (view) parts.push(`t=${view.map(round).join(",")}`);
    else if (pinned !== null) parts.push(`t=${round(pinned)}`);
    if (this.large.chart) parts.push(`chart=${encodeURIComponent(this.large.chart.name)}`);
    return parts.length > 0 ? `#${parts.join("&")}` : "";
  }

  /** Writes the address a little later: browsers refuse many changes in a second. */
  follow() {
    const { hash } = this;
    if (hash === (this.written ?? "")) return;
    this.written = hash;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      try {
        history.replaceState(null, "", hash || location.pathname + location.search);
      } catch {
        // A page inside another may not change its address.
      }
    }, 200);
  }
}
