// The behaviour of the page: charts, sortable tables, text to copy.

/** Announces something to screen readers. */
const live = element("p", "unseen");
live.setAttribute("role", "status");
document.querySelector("main").append(live);

function startCharts() {
  const written = document.getElementById("drawn");
  const figures = [...document.querySelectorAll("figure[data-place]")];
  if (!written || figures.length === 0) return;
  const drawn = JSON.parse(written.textContent);
  const charts = figures.map((figure) => new Chart(figure, drawn));
  const together = new Together(charts, live);
  const keys = element(
    "p",
    "how",
    "Drag over a chart to see a part of the time, double-click to see all of it. " +
      "With the keyboard: arrows move, + and \u2212 zoom, 0 shows all.",
  );
  keys.id = "keys";
  document.querySelector("section.chapter h2").after(keys);
  charts.forEach((chart) => startLegend(chart, together));
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

async function copy(from) {
  try {
    await navigator.clipboard.writeText(from.textContent.trim());
  } catch {
    // Not every page opened from disk may write to the clipboard; copying a selection works.
    getSelection().selectAllChildren(from);
    document.execCommand("copy");
  }
}

function startCopying(box) {
  const made = button("Copy", async () => {
    await copy(box.firstElementChild);
    made.textContent = "Copied";
    live.textContent = "Copied";
    setTimeout(() => (made.textContent = "Copy"), 2000);
  });
  made.className = "copy";
  made.setAttribute("aria-label", `Copy the ${box.dataset.copy}`);
  box.append(made);
}

document.documentElement.classList.add("alive");
startCharts();
document.querySelectorAll(".sheet > table").forEach((table) => {
  startSorting(table);
  startFilter(table);
});
document.querySelectorAll("[data-copy]").forEach(startCopying);
