// Tables sort and filter, with the mouse and with the keyboard; advice can be copied.

import assert from "node:assert/strict";
import { browse } from "./browser.mjs";

const isSorted = (numbers, sign) => numbers.every((value, place) => place === 0 || sign * (value - numbers[place - 1]) >= 0);

await browse(async (open) => {
  const page = await open();
  const table = page.locator(".listing:has(.filter)").first();
  const head = table.locator("thead th.number").last();
  const column = await head.evaluate((cell) => cell.cellIndex);
  const numbers = () =>
    table.locator("tbody tr").evaluateAll(
      (rows, column) => rows.map((row) => parseFloat(row.cells[column].dataset.number)).filter((value) => !Number.isNaN(value)),
      column,
    );
  assert.equal(await head.getAttribute("aria-sort"), null);
  await head.getByRole("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  assert.ok(isSorted(await numbers(), -1));
  await head.getByRole("button").press("Enter");
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  assert.ok(isSorted(await numbers(), 1));

  const words = table.locator("thead th:not(.number)").first();
  await words.getByRole("button").press("Space");
  assert.equal(await words.getAttribute("aria-sort"), "ascending");
  assert.equal(await table.locator("[aria-sort]").count(), 1);

  const rows = table.locator("tbody tr:visible");
  const all = await rows.count();
  const wanted = (await table.locator("tbody tr").last().textContent()).trim().split(/\s+/)[0];
  await table.getByLabel("Filter").fill(wanted.toUpperCase());
  const left = await rows.count();
  assert.ok(left > 0 && left <= all);
  for (const text of await rows.allTextContents()) assert.ok(text.toLowerCase().includes(wanted.toLowerCase()));
  await table.getByLabel("Filter").fill("nothing is called like this");
  assert.equal(await rows.count(), 0);
  assert.match(await table.locator(".filter span").textContent(), /^0 of \d+ rows$/);
  await table.getByLabel("Filter").fill("");
  assert.equal(await rows.count(), all);

  const command = page.locator(".command");
  await command.getByRole("button").click();
  await command.getByText("Copied").waitFor();
});
console.log("tables answer");
