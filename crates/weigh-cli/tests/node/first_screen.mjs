// What most readers want is on the first screen: headline, bars, and the charts of CPU and memory.

import assert from "node:assert/strict";
import { browse } from "./browser.mjs";

await browse(async (open) => {
  for (const options of [{}, { javaScriptEnabled: false }]) {
    const page = await open(options);
    for (const part of ["h1", ".verdict", ".bars"]) {
      const box = await page.locator(part).boundingBox();
      assert.ok(box.y >= 0 && box.y + box.height <= 800, `${part} ends at ${box.y + box.height}`);
    }
    // What limited the run, when its memory peaked, and which process had it.
    const verdict = (await page.locator(".verdict").textContent()).replace(/\s+/g, " ");
    assert.match(verdict, /Bottleneck \S.+ Memory peak .*\d \S+ (at|between|before) .+ \(pid \d+\)/, verdict);
    // How many findings are above them depends on the machine: at least their curves begin.
    for (const part of ["#chart-cpu svg.chart", "#chart-memory svg.chart"]) {
      const box = await page.locator(part).boundingBox();
      assert.ok(box.y >= 0 && box.y + box.height / 2 <= 800, `${part} begins at ${box.y}`);
    }
    assert.match(await page.locator("#chart-memory figcaption .peak").textContent(), /^Peak \S+ \S+ (at|between|before) /);
    assert.equal(await page.locator(".bars > li").count(), await page.locator(".bars > li:not(.unknown)").count());

    // All columns of the figures can be read.
    const sheet = page.locator(".listing:has(#figures) .sheet").first();
    const [needs, has] = await sheet.evaluate((box) => [box.scrollWidth, box.clientWidth]);
    assert.ok(needs <= has, `the figures need ${needs} of ${has} pixels`);
    assert.ok((await sheet.locator("td.source").first().boundingBox()).width > 200);
  }
});
console.log("all on the first screen");
