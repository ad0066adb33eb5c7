// The behaviour of the page: colours, charts, sortable tables, text to copy.

document.querySelector("main").append(live);

/** Switches between light and dark, and remembers it where the browser permits that. */
function startTheme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const toggle = button("", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("weigh-theme", root.dataset.theme);
    } catch {
      // Then it is for this page alone.
    }
    name();
  });
  const name = () => (toggle.textContent = isDark() ? "Light" : "Dark");
  toggle.className = "tool";
  toggle.title = "Switch the colours of the page";
  dark.addEventListener("change", name);
  name();
  document.querySelector("nav.contents .inside").append(toggle);
}

function startCharts() {
  const written = document.getElementById("drawn");
  const figures = [...document.querySelectorAll("figure[data-place]")];
  if (!written || figures.length === 0) return;
  const drawn = JSON.parse(written.textContent);
  const charts = figures.map((figure) => new Chart(figure, drawn));
  const together = new Together(charts);
  const keys = element(
    "p",
    "unseen",
    "Enter enlarges, Escape closes. Arrows move, + and \u2212 zoom, 0 shows all.",
  );
  keys.id = "keys";
  document.querySelector("main").append(keys);
  charts.forEach((chart) => startLegend(chart, together));
  const lines = document.querySelector(".lines");
  if (lines) together.followers.push(new TimelineView(lines, together));
  new PageLink(charts, together, new Large(charts, together));
  document.querySelectorAll("[data-moment]").forEach(startMoment);
  together.changed(true);
}

/** A time in a table is a link to that moment in the charts. */
function startMoment(cell) {
  const link = element("a", "", cell.textContent);
  link.href = `#t=${Number(cell.dataset.number)}`;
  cell.replaceChildren(link);
}

function startLegend(chart, together) {
  chart.figure.querySelectorAll(".legend > li[data-series]").forEach((item) => {
    const series = chart.series[Number(item.dataset.series)];
    const toggle = button("", () => {
      const hide = !chart.hidden.delete(series);
      if (hide) chart.hidden.add(series);
      toggle.setAttribute("aria-pressed", String(!hide));
      together.changed(true);
    });
    toggle.setAttribute("aria-pressed", "true");
    toggle.append(...item.childNodes);
    item.append(toggle);
  });
}

/** Numbers by value, unknown last in either direction, text in natural order. */
function byCell(column, isNumber, sign) {
  const letters = new Intl.Collator("en", { numeric: true });
  const cell = (row) => row.cells[column];
  return (a, b) => {
    if (!isNumber) return sign * letters.compare(cell(a).textContent, cell(b).textContent);
    const [x, y] = [a, b].map((row) => parseFloat(cell(row).dataset.number));
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return sign * (x - y);
  };
}

function startSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  const [body] = table.tBodies;
  heads.forEach((head, column) => {
    const isNumber = head.classList.contains("number");
    const sort = button(head.textContent, () => {
      const was = head.getAttribute("aria-sort");
      // The largest first: that is usually wanted.
      const first = isNumber ? "descending" : "ascending";
      const now = was === null ? first : was === "ascending" ? "descending" : "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", now);
      body.append(...[...body.rows].sort(byCell(column, isNumber, now === "ascending" ? 1 : -1)));
    });
    head.replaceChildren(sort);
  });
}

/** Folds tables with many rows. */
const MANY_ROWS = 15;

function startFilter(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length <= MANY_ROWS) return;
  const label = element("label", "filter", "Filter ");
  const input = element("input");
  input.type = "search";
  input.autocomplete = "off";
  const left = (number) => `${number} of ${rows.length} rows`;
  const counted = element("span", "", left(rows.length));
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    });
    counted.textContent = left(rows.filter((row) => !row.hidden).length);
    live.textContent = counted.textContent;
  });
  label.append(input, counted);
  table.closest(".sheet").before(label);
}

function startCopying(box) {
  const made = copyButton("Copy", () => box.firstElementChild.textContent.trim());
  made.className = "copy";
  made.setAttribute("aria-label", `Copy the ${box.dataset.copy}`);
  box.append(made);
}

document.documentElement.classList.add("alive");
startCharts();
startTheme();
document.querySelectorAll(".sheet > table").forEach((table) => {
  startSorting(table);
  startFilter(table);
});
document.querySelectorAll("[data-copy]").forEach(startCopying);
