// What the script draws is what came with the page: same groups, same words, same places.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { browse } from "./browser.mjs";

const [, , , sources] = process.argv;
const parts = ["quantity.js", "axis.js", "picture.js", "chart.js"];
const script = parts.map((part) => readFileSync(join(sources, part), "utf8")).join("");

/** A group as words and numbers. */
function read() {
  return [...document.querySelectorAll("figure[data-place]")].map((figure) => {
    const svg = figure.querySelector("svg.chart");
    const groups = [...svg.querySelectorAll(":scope > g:not(.cursor)")].map((group) => {
      const nodes = [...group.children].map((node) => ({
        kind: `${node.tagName}.${node.getAttribute("class")} ${node.textContent}`,
        places: ["x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height", "d"]
          .flatMap((name) => (node.getAttribute(name) ?? "").match(/-?[\d.]+/g) ?? [])
          .map(Number),
      }));
      return [group.getAttribute("class"), nodes];
    });
    return { name: figure.id, groups: Object.fromEntries(groups) };
  });
}

await browse(async (open) => {
  const page = await open({ bypassCSP: true });
  const came = await page.evaluate(read);
  await page.addScriptTag({ content: script });
  await page.evaluate(() => {
    const drawn = JSON.parse(document.getElementById("drawn").textContent);
    for (const figure of document.querySelectorAll("figure[data-place]")) {
      new Chart(figure, drawn).redraw();
    }
  });
  const redrawn = await page.evaluate(read);
  assert.ok(came.length > 0);
  came.forEach(({ name, groups }, place) => {
    for (const [group, nodes] of Object.entries(groups)) {
      const again = redrawn[place].groups[group];
      const where = `${group} of ${name}`;
      assert.deepEqual(again.map((node) => node.kind), nodes.map((node) => node.kind), where);
      nodes.forEach((node, number) => {
        const other = again[number].places;
        assert.equal(other.length, node.places.length, `${where}: ${node.kind}`);
        const apart = node.places.map((value, index) => Math.abs(value - other[index]));
        assert.ok(Math.max(0, ...apart) < 0.6, `${where}: ${node.kind} is ${Math.max(...apart)} pixels off`);
      });
    }
  });
});
console.log("the same pictures");
