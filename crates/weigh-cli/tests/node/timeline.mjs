// Three hundred processes in a few rows that can be read, opened and zoomed.

import assert from "node:assert/strict";
import { browse, drawn } from "./browser.mjs";

await browse(async (open) => {
  const page = await open();
  const box = page.locator(".lines");
  assert.ok((await box.boundingBox()).height < 600);
  const row = box.locator("details").filter({ hasText: "\u00d7 300" });
  assert.equal(await row.count(), 1);
  const bars = row.locator("summary .track i");
  assert.equal(await bars.count(), 300);
  const track = await row.locator("summary .track").boundingBox();
  for (const bar of [bars.first(), bars.last()]) {
    const { x, width, y, height } = await bar.boundingBox();
    assert.ok(x >= track.x - 1 && x + width <= track.x + track.width + 1 && width >= 2, `${x} ${width}`);
    assert.ok(y >= track.y && y + height <= track.y + track.height);
  }
  assert.match(await bars.first().getAttribute("title"), /^\d+: .+ to .+/);

  // Each process is a row of its own when it is opened.
  await row.locator("summary").press("Enter");
  assert.equal(await row.locator("li").count(), 300);
  assert.ok(await row.locator("li").first().isVisible());
  await row.locator("summary").press("Enter");

  // It is zoomed with the charts, and the charts with it.
  const wide = (await bars.first().boundingBox()).width;
  await page.locator("#chart-cpu .plot").focus();
  await page.keyboard.press("End");
  await page.keyboard.press("+");
  await page.keyboard.press("0");
  await drawn(page);
  assert.equal((await bars.first().boundingBox()).width, wide);
  const ticks = () => page.locator("#chart-cpu .axis.x text").allTextContents();
  const whole = await ticks();
  await box.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await row.locator("summary .track").boundingBox();
  await page.mouse.move(x + width * 0.2, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.5, y + height / 2, { steps: 5 });
  await drawn(page);
  assert.ok(await box.locator(".chosen").isVisible());
  await page.mouse.up();
  await drawn(page);
  assert.notDeepEqual(await ticks(), whole);
  assert.equal(await row.getAttribute("open"), null, "a drag opens nothing");
  assert.ok(await box.locator(".now").isVisible());
});
console.log("the timeline can be read");
