// Charts and their data as files, made by the page itself.

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a");
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** The values of a chart that are in its range, as CSV. */
function chartData(chart) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const unit = chart.scale.replace("decimal ", "").replace("plain ", "");
  const head = ["time (seconds)", ...chart.series.map(({ name }) => quoted(`${name} (${unit})`))];
  const inside = (at) => at >= chart.range[0] && at <= chart.range[1];
  const rows = chart.times.flatMap((at, place) => {
    const values = chart.series.map(({ values }) => values[place] ?? "");
    return inside(at) ? [[Number(at.toFixed(6)), ...values]] : [];
  });
  return [head, ...rows].map((row) => row.join(",")).join("\r\n") + "\r\n";
}

/** What a picture needs of the page's style. */
const STYLED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin",
  "paint-order", "font-family", "font-size", "font-weight"];

/** A chart as it is drawn, with title and legend, as an SVG file of its own. */
function chartPicture(chart) {
  const { fullWidth: width, fullHeight: height } = chart.box;
  const [header, line] = [34, 18];
  const names = chart.heat ? [] : chart.visible;
  // As many names in a line as fit.
  const places = [];
  let [x, row] = [12, 0];
  for (const { name } of names) {
    const wide = widthOf(name) * 1.1 + 34;
    if (x + wide > width && x > 12) [x, row] = [12, row + 1];
    places.push([x, row]);
    x += wide;
  }
  const full = header + height + (names.length > 0 ? (row + 1) * line + 8 : 0);
  const picture = node("svg", { xmlns: SVG, width, height: full, viewBox: `0 0 ${width} ${full}` });
  const style = getComputedStyle(chart.figure);
  const paper = node("rect", { width: "100%", height: "100%", fill: style.backgroundColor });
  const text = (size, x, y, content) =>
    node("text", { x, y, fill: style.color, "font-family": "sans-serif", "font-size": size }, content);
  const drawing = chart.svg.cloneNode(true);
  const originals = [chart.svg, ...chart.svg.querySelectorAll("*")];
  [drawing, ...drawing.querySelectorAll("*")].forEach((made, place) => {
    const from = getComputedStyle(originals[place]);
    STYLED.forEach((key) => made.setAttribute(key, from.getPropertyValue(key)));
    made.removeAttribute("class");
    if (made.getAttribute("style")) made.setAttribute("fill", from.fill);
    made.removeAttribute("style");
  });
  drawing.querySelectorAll("[data-plot]").forEach((made) => made.removeAttribute("data-plot"));
  set(drawing, { y: header, width, height });
  const legend = names.flatMap(({ name, colour }, place) => {
    const [x, row] = places[place];
    const y = header + height + 12 + row * line;
    const drawn = chart.svg.querySelector(`.series .c${colour}`);
    const shade = drawn ? getComputedStyle(drawn).getPropertyValue("--c") : style.color;
    return [node("rect", { x, y: y - 9, width: 16, height: 10, rx: 2, fill: shade.trim() }), text(12, x + 22, y, name)];
  });
  picture.append(paper, text(15, 12, 23, chart.title), drawing, ...legend);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(picture)}\n`;
}
