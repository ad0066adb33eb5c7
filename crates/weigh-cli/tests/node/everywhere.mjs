// The page is whole without its script, on a phone, in the dark and on paper.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { browse } from "./browser.mjs";

await browse(async (open) => {
  const plain = await open({ javaScriptEnabled: false });
  const charts = plain.locator("svg.chart:visible");
  assert.ok((await charts.count()) > 1);
  for (const chart of await charts.all()) assert.ok((await chart.boundingBox()).height > 100);
  for (const name of ["figures", "processes"]) {
    const cell = plain.locator(`.listing:has(#${name}) tbody .number`).first();
    assert.match(await cell.textContent(), /\d/);
    assert.ok(await cell.isVisible());
  }
  assert.equal(await plain.getByRole("button").count(), 0);

  for (const [width, options] of [[360, {}], [390, {}], [390, { javaScriptEnabled: false }]]) {
    const phone = await open({ viewport: { width, height: 740 }, isMobile: true, hasTouch: true, ...options });
    if (!("javaScriptEnabled" in options)) {
      await phone.evaluate(() => document.querySelectorAll("details").forEach((fold) => (fold.open = true)));
    }
    const wide = await phone.locator("html").evaluate((root) => root.scrollWidth);
    assert.ok(wide <= width, `${wide} pixels wide`);
    for (const part of ["h1", ".verdict", ".sheet", "figure", ".lines"]) {
      const box = await phone.locator(part).first().boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width, part);
    }
  }

  // Without the script a part can be unfolded as well.
  const fold = plain.locator("details.fold").first();
  await fold.locator("summary").click();
  assert.ok(await fold.locator("table, figure, li").first().isVisible());

  const colours = async (colorScheme) => {
    const page = await open({ colorScheme });
    return page.evaluate(() => ({
      paper: getComputedStyle(document.body).backgroundColor,
      ink: getComputedStyle(document.body).color,
      first: getComputedStyle(document.querySelector(".series .c0")).getPropertyValue("--c"),
    }));
  };
  const [light, dark] = [await colours("light"), await colours("dark")];
  for (const what of Object.keys(light)) assert.notEqual(light[what], dark[what], what);

  // Paper is white, whatever the screen was.
  const paper = await open({ colorScheme: "dark" });
  await paper.emulateMedia({ media: "print", colorScheme: "dark" });
  const printed = await paper.evaluate(() => {
    const { backgroundColor, color } = getComputedStyle(document.body);
    return [backgroundColor, color];
  });
  assert.deepEqual(printed, ["rgb(255, 255, 255)", light.ink]);
  assert.ok(await paper.locator("nav").isHidden());
  writeFileSync(process.argv[3], await paper.pdf({ format: "A4" }));
});
console.log("whole everywhere");
