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
    const complaints = async () => {
      const { violations, passes } = await page.evaluate(() => window.axe.run());
      assert.ok(passes.length > 20);
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
    };
    assert.deepEqual(await complaints(), [], JSON.stringify(options));
    // Also what is folded, and an enlarged chart.
    await page.evaluate(() => document.querySelectorAll("details").forEach((fold) => (fold.open = true)));
    await drawn(page);
    assert.deepEqual(await complaints(), [], `unfolded: ${JSON.stringify(options)}`);
    await page.locator(".enlarge").first().click();
    await drawn(page);
    assert.deepEqual(await complaints(), [], `enlarged: ${JSON.stringify(options)}`);
  }

  // Everything that can be clicked can be reached with the keyboard, and is seen to be.
  const page = await open();
  const reachable = await page.locator(":is(a, button, input, summary, .plot):visible").count();
  let outlined = 0;
  for (let presses = 0; presses < reachable; presses += 1) {
    await page.keyboard.press("Tab");
    const style = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    outlined += style !== "none";
  }
  assert.ok(outlined >= reachable - 1, `${outlined} of ${reachable}`);
});
console.log("nothing to complain of");
