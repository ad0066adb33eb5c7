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
        places: ["x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height"]
          .flatMap((name) => (node.getAttribute(name) ?? "").match(/-?[\d.]+/g) ?? [])
          .map(Number),
        path: node.getAttribute("d") ?? "",
      }));
      return [group.getAttribute("class"), nodes];
    });
    return { name: figure.id, groups: Object.fromEntries(groups) };
  });
}

/** The pieces of a path, each from one place to the next. */
function pieces(path) {
  const found = [];
  let [at, began] = [null, null];
  for (const [, letter, numbers] of path.matchAll(/([MLHVZ])([^MLHVZ]*)/g)) {
    const [first, second] = numbers.split(" ").map(Number);
    const to = { M: [first, second], L: [first, second], H: [first, at?.[1]], V: [at?.[0], first], Z: began }[letter];
    if (letter === "M") began = to;
    else found.push([at, to]);
    at = to;
  }
  return found;
}

/** How far a place is from a piece. */
function distance([x, y], [[x1, y1], [x2, y2]]) {
  const [along, up] = [x2 - x1, y2 - y1];
  const length = along * along + up * up;
  const share = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - x1) * along + (y - y1) * up) / length));
  return Math.hypot(x - x1 - share * along, y - y1 - share * up);
}

/** How far the places of one path are from another path, at most. */
function apart(path, other) {
  const [ways, others] = [pieces(path), pieces(other)];
  const nearest = (place) => Math.min(...others.map((piece) => distance(place, piece)));
  // The end of one piece is the beginning of the next: each place once.
  return Math.max(0, ...[...new Set(ways.flat())].map(nearest));
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
        const other = again[number];
        assert.equal(other.places.length, node.places.length, `${where}: ${node.kind}`);
        const off = node.places.map((value, index) => Math.abs(value - other.places[index]));
        // One of them may name places that are hardly apart, and the other not.
        off.push(apart(node.path, other.path), apart(other.path, node.path));
        assert.ok(Math.max(...off) < 0.6, `${where}: ${node.kind} is ${Math.max(...off)} pixels off`);
      });
    }
  });
});
console.log("the same pictures");
