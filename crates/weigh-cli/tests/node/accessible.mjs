// Everybody can use the page: axe finds nothing to complain of, in either scheme, zoomed or not.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { browse, drawn, need } from "./browser.mjs";

const axe = readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");

await browse(async (open) => {
  for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { viewport: { width: 360, height: 740 } }]) {
    const page = await open(options);
    await page.locator(".plot").first().focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("+");
    await drawn(page);
    await page.evaluate(axe);
    const { violations, passes } = await page.evaluate(() => window.axe.run());
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
    assert.deepEqual(told, [], JSON.stringify(options));
    assert.ok(passes.length > 20);
  }

  // Everything that can be clicked can be reached with the keyboard, and is seen to be.
  const page = await open();
  const reachable = await page.locator("a, button, input, .plot").count();
  let outlined = 0;
  for (let presses = 0; presses < reachable; presses += 1) {
    await page.keyboard.press("Tab");
    const style = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    outlined += style !== "none";
  }
  // "Show all" is not there while all is shown.
  assert.ok(outlined >= reachable - 1, `${outlined} of ${reachable}`);
});
console.log("nothing to complain of");
