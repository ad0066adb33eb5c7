// Charts answer to mouse, keyboard and finger, all of them together.

import assert from "node:assert/strict";
import { browse, closed, drawn } from "./browser.mjs";

await browse(async (open) => {
  const page = await open();
  // One with lines or areas of several series, and another one.
  const chart = page.locator("figure:has(.legend button)").first();
  const other = page.locator("figure[data-place]").nth(1);
  const plot = chart.locator(".plot");
  const readout = page.locator(".readout");
  const picture = async (figure = chart) => {
    await drawn(page);
    return figure.evaluate((shown) => ({
      paths: [...shown.querySelectorAll(".series > path")].map((path) => path.getAttribute("d")),
      times: [...shown.querySelectorAll(".axis.x text")].map((tick) => tick.textContent),
      values: [...shown.querySelectorAll(".axis.y text")].map((tick) => tick.textContent),
    }));
  };
  const at = async (share) => {
    const [left, top, width, height] = (await chart.locator("svg.chart").getAttribute("data-plot")).split(" ").map(Number);
    const box = await chart.locator("svg.chart").boundingBox();
    return [box.x + left + share * width, box.y + top + height / 2];
  };
  const whole = await picture();
  const otherWhole = await picture(other);
  await plot.scrollIntoViewIfNeeded();

  // The mouse points at a time.
  await page.mouse.move(...(await at(0.5)));
  await drawn(page);
  assert.match(await readout.locator("p").textContent(), /\d+(\.\d+)? (ms|s|min|h)/);
  const names = await chart.locator(".legend span").allTextContents();
  const read = await readout.locator("span").allTextContents();
  names.forEach((name) => assert.ok(read.includes(name), `${name} is not in ${read}`));
  assert.ok((await readout.locator("b").allTextContents()).every((value) => /\d|n\/a/.test(value)));
  assert.equal(await other.locator(".cursor-line").count(), 1, "the same time in the other charts");

  // A drag looks closer, everywhere; the button shows all again, as it was.
  const drag = async (from, to) => {
    // A click on the bar above lets the browser scroll.
    await plot.scrollIntoViewIfNeeded();
    await page.mouse.move(...(await at(from)));
    await page.mouse.down();
    await page.mouse.move(...(await at(to)), { steps: 5 });
    await drawn(page);
    assert.equal(await chart.locator(".selection").count(), 1);
  };
  await drag(0.3, 0.6);
  await page.mouse.up();
  await page.mouse.move(...(await at(0.5)));
  const closer = await picture();
  assert.equal(await readout.count(), 1, "what is pointed at right after is of the new range");
  assert.notDeepEqual(closer.paths, whole.paths);
  assert.notDeepEqual(closer.times, whole.times);
  assert.notDeepEqual((await picture(other)).times, otherWhole.times);
  const showAll = page.getByRole("button", { name: "Show all" });
  await showAll.click();
  assert.deepEqual(await picture(), whole);
  assert.ok(await showAll.isHidden());

  // So do Escape, and a double click on the enlarged chart; a drag that is given up changes nothing.
  const doubleClick = async () => {
    await chart.locator(".enlarge").click();
    await page.locator("dialog .plot").dblclick();
    await page.keyboard.press("Escape");
    await closed(page);
    await page.mouse.move(2, 2);
  };
  for (const back of [doubleClick, () => page.keyboard.press("Escape")]) {
    await drag(0.2, 0.4);
    await page.mouse.up();
    assert.notDeepEqual(await picture(), whole);
    await back();
    assert.deepEqual(await picture(), whole);
  }
  await drag(0.2, 0.4);
  await page.keyboard.press("Escape");
  await page.mouse.up();
  assert.deepEqual(await picture(), whole);

  // The wheel zooms with a key.
  await plot.scrollIntoViewIfNeeded();
  await page.mouse.move(...(await at(0.5)));
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await page.waitForFunction(() => !document.querySelector(".range").hidden);
  await page.mouse.move(2, 2);
  await showAll.click();

  // A click on a name takes its series away and brings it back.
  const toggle = chart.locator(".legend button").first();
  await toggle.click();
  assert.equal(await toggle.getAttribute("aria-pressed"), "false");
  assert.equal((await picture()).paths.length, whole.paths.length - 1);
  await toggle.press("Enter");
  assert.equal(await toggle.getAttribute("aria-pressed"), "true");
  assert.deepEqual(await picture(), whole);

  // All of it with the keyboard, and said aloud.
  await plot.focus();
  const said = async (key) => {
    await page.keyboard.press(key);
    await drawn(page);
    return page.locator("[role=status]").textContent();
  };
  const first = await said("Home");
  assert.match(first, /^\S+.*: .+ \S+/);
  // Two looks may be so close together that they read the same.
  let steps = 1;
  while ((await said("ArrowRight")) === first && steps < 100) steps += 1;
  assert.notEqual(await page.locator("[role=status]").textContent(), first);
  while (steps > 1) {
    await said("ArrowLeft");
    steps -= 1;
  }
  assert.equal(await said("ArrowLeft"), first);
  assert.equal(await readout.count(), 1);
  await said("Shift+ArrowRight");
  assert.notEqual(await said("End"), first);
  await said("+");
  assert.notDeepEqual((await picture()).times, whole.times);
  const span = await page.locator(".range span").textContent();
  await said("Home");
  await said("Shift+ArrowLeft");
  await drawn(page);
  assert.notEqual(await page.locator(".range span").textContent(), span, "the range goes with the cursor");
  await said("0");
  assert.deepEqual(await picture(), whole);

  // A finger points, and the page can still be scrolled with it.
  const phone = await open({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  const touched = phone.locator("figure[data-place] .plot").first();
  await touched.scrollIntoViewIfNeeded();
  const box = await touched.boundingBox();
  await phone.touchscreen.tap(box.x + box.width * 0.6, box.y + box.height / 2);
  await drawn(phone);
  assert.equal(await phone.locator(".readout").count(), 1);
  assert.equal(await touched.evaluate((plot) => getComputedStyle(plot).touchAction), "pan-y");
  // Two fingers that part look closer. No driver has two, so the page is told of them.
  await touched.evaluate((plot) => {
    const { left, width } = plot.getBoundingClientRect();
    const finger = (type, pointerId, share) => {
      const at = { clientX: left + width * share, clientY: plot.getBoundingClientRect().top + 50 };
      plot.dispatchEvent(new PointerEvent(type, { pointerType: "touch", pointerId, bubbles: true, ...at }));
    };
    finger("pointerdown", 1, 0.5);
    finger("pointerdown", 2, 0.6);
    finger("pointermove", 1, 0.3);
    finger("pointermove", 2, 0.9);
    finger("pointerup", 1, 0.3);
    finger("pointerup", 2, 0.9);
  });
  await drawn(phone);
  assert.ok(await phone.getByRole("button", { name: "Show all" }).isVisible());
  const letters = await touched.locator(".tick").first().evaluate((tick) => tick.getBoundingClientRect().height);
  assert.ok(letters > 9, `letters of ${letters} pixels are too small to read`);
});
console.log("charts answer");
