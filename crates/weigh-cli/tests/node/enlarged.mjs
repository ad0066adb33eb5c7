// A chart is enlarged with mouse and keyboard, and can be taken away as a picture and as numbers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { browse, closed, drawn } from "./browser.mjs";

await browse(async (open) => {
  const page = await open();
  const chart = page.locator("#chart-memory");
  const dialog = page.locator("dialog");
  const small = await chart.boundingBox();
  const paths = () => chart.locator(".series > path").evaluateAll((all) => all.map((path) => path.getAttribute("d")));
  const whole = await paths();

  // Enter enlarges, Escape puts it back where it was, and the keyboard with it.
  await chart.locator(".plot").focus();
  await page.keyboard.press("Enter");
  await drawn(page);
  assert.ok(await dialog.isVisible());
  assert.equal(await dialog.getAttribute("aria-label"), await chart.locator("h3").textContent());
  const large = await dialog.locator("svg.chart").boundingBox();
  assert.ok(large.width > 1.5 * small.width && large.height > small.height, JSON.stringify(large));
  assert.ok(await dialog.locator("figcaption .how").isVisible(), "how it was measured");
  await page.keyboard.press("Escape");
  await closed(page);
  assert.ok(await dialog.isHidden());
  assert.deepEqual(await chart.boundingBox(), small);
  assert.deepEqual(await paths(), whole);
  assert.ok(await chart.locator(".plot").evaluate((plot) => plot === document.activeElement));

  // So do a click on the chart and on its title; the next one is a button away.
  await chart.locator(".plot").click();
  assert.ok(await dialog.isVisible());
  await page.getByRole("button", { name: "Previous" }).click();
  assert.equal(await dialog.locator("figure").getAttribute("id"), "chart-cpu");
  await page.getByRole("button", { name: "Close" }).click();
  await closed(page);
  assert.ok(await dialog.isHidden());
  await page.locator("#chart-cpu .enlarge").click();
  await page.getByRole("button", { name: "Next" }).click();
  assert.equal(await dialog.locator("figure").getAttribute("id"), "chart-memory");

  // The numbers: a row for each time, a column for each series.
  const download = async (name) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    return [file.suggestedFilename(), readFileSync(await file.path(), "utf8")];
  };
  const { names, times, first } = await page.evaluate(() => {
    const { charts, times } = JSON.parse(document.getElementById("drawn").textContent);
    const memory = charts.find(({ name }) => name === "memory");
    return {
      names: memory.series.map(({ name }) => name),
      times: times[memory.times].steps.length,
      first: memory.series.map(({ values }) => values[0]),
    };
  });
  const [table, numbers] = await download("Download CSV");
  const lines = numbers.trimEnd().split("\r\n");
  assert.equal(table, "memory.csv");
  assert.equal(lines[0], ["time (seconds)", ...names.map((name) => `${name} (bytes)`)].join(","));
  assert.equal(lines.length, times + 1);
  assert.deepEqual(lines[1].split(",").slice(1).map(Number), first);

  // The picture: well-formed, with its own colours, title and names, and no script of anybody.
  const [picture, svg] = await download("Download SVG");
  assert.equal(picture, "memory.svg");
  const read = await page.evaluate((text) => {
    const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    return {
      kind: root.tagName,
      words: [...root.querySelectorAll("text")].map((one) => one.textContent),
      fills: [...root.querySelectorAll("path")].map((path) => path.getAttribute("fill")),
      foreign: root.querySelectorAll("script, foreignObject, [class]").length,
    };
  }, svg);
  assert.equal(read.kind, "svg");
  [await chart.locator("h3").textContent(), ...names].forEach((word) => assert.ok(read.words.includes(word), word));
  assert.ok(read.fills.length >= names.length && read.fills.every((fill) => /^rgb/.test(fill)), read.fills.join());
  assert.equal(read.foreign, 0);
});
console.log("charts can be enlarged");
