// What a reader chooses: light or dark, a range of time to send to others, what is unfolded.

import assert from "node:assert/strict";
import { browse, closed, drawn } from "./browser.mjs";

await browse(async (open) => {
  const page = await open({ colorScheme: "light" });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: "Dark", exact: true }).press("Enter");
  const dark = await paper();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await paper(), dark, "it is remembered");
  await page.getByRole("button", { name: "Light", exact: true }).click();
  assert.equal(await paper(), light);
  const followed = await open({ colorScheme: "dark" });
  assert.equal(await followed.evaluate(() => getComputedStyle(document.body).backgroundColor), dark, "the system's");

  // Groups of figures are opened with the keyboard.
  const group = page.locator(".listing:has(#figures) details.fold").first();
  await group.locator("> summary").focus();
  await page.keyboard.press("Enter");
  assert.ok(await group.locator("table").isVisible());
  await page.keyboard.press("Space");
  assert.ok(await group.locator("table").isHidden());

  // The address follows the zoom, and leads back to it.
  const ticks = (shown) => shown.locator("#chart-cpu .axis.x text").allTextContents();
  const whole = await ticks(page);
  await page.locator("#chart-cpu .plot").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("+");
  await drawn(page);
  const zoomed = await ticks(page);
  assert.notDeepEqual(zoomed, whole);
  await page.waitForURL(/#t=[\d.]+,[\d.]+$/);
  const again = await open({ fragment: new URL(page.url()).hash });
  await drawn(again);
  assert.deepEqual(await ticks(again), zoomed);
  assert.ok(await again.getByRole("button", { name: "Copy link" }).first().isVisible());
  await page.keyboard.press("0");
  await page.waitForURL((address) => address.hash === "");
  assert.deepEqual(await ticks(page), whole);

  // A moment, and a chart.
  const moment = await open({ fragment: "#t=0.3&chart=memory" });
  await drawn(moment);
  assert.equal(await moment.locator("dialog figure").getAttribute("id"), "chart-memory");
  assert.equal(await moment.locator("dialog .cursor-line").count(), 1);
  await moment.keyboard.press("Escape");
  await closed(moment);
  assert.equal(await moment.locator("#chart-cpu .cursor-line").count(), 1, "it stays");
  // Times in tables are links to them.
  await moment.getByRole("button", { name: "Show all" }).click();
  await moment.locator("#chart-cpu .cursor-line").waitFor({ state: "detached" });
  await moment.locator("td[data-moment] a").first().click();
  await moment.locator("#chart-cpu .cursor-line").waitFor({ state: "attached" });
  // What is no time is no reason to fail.
  for (const fragment of ["#t=", "#t=x,y", "#t=9,1", "#t=1e99", "#chart=nothing", "#t=-1,%FF"]) {
    await drawn(await open({ fragment }));
  }
});
console.log("choices are kept");
