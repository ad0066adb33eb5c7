// The page is whole without its script, on a phone, in the dark and on paper.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { browse } from "./browser.mjs";

await browse(async (open) => {
  const plain = await open({ javaScriptEnabled: false });
  const charts = plain.locator("svg.chart");
  assert.ok((await charts.count()) > 1);
  for (const chart of await charts.all()) assert.ok((await chart.boundingBox()).height > 100);
  for (const name of ["figures", "processes"]) {
    const cell = plain.locator(`.listing:has(#${name}) tbody .number`).first();
    assert.match(await cell.textContent(), /\d/);
    assert.ok(await cell.isVisible());
  }
  assert.equal(await plain.getByRole("button").count(), 0);

  for (const options of [{}, { javaScriptEnabled: false }]) {
    const phone = await open({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, ...options });
    const wide = await phone.locator("html").evaluate((root) => root.scrollWidth);
    assert.ok(wide <= 360, `${wide} pixels wide`);
    for (const part of ["h1", ".verdict", ".sheet", "figure"]) {
      const box = await phone.locator(part).first().boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 360, part);
    }
  }

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
