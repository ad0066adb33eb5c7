// A page in Debian's Chromium, as a person opens it: from a disk, without a network.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The packages are not beside these files: `cargo xtask test` puts them under target/. */
export const need = createRequire(join(process.env.WEIGH_TEST_NODE, "package.json"));

/** The page that is looked at. */
export const file = process.argv[2];

const { chromium } = need("playwright-core");

/** Runs `look` with a function that opens the page; what the page complains of is a failure. */
export async function browse(look) {
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"],
  });
  const complaints = [];
  const open = async ({ fragment = "", ...options } = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
    page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
    page.on("request", (request) => {
      // A download is made of an object of the page itself.
      if (!/^(file|blob):/.test(request.url())) complaints.push(`request: ${request.url()}`);
    });
    await page.goto(pathToFileURL(file).href + fragment);
    return page;
  };
  try {
    await look(open);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
  }
}

/** Lets the page draw what was asked of it. */
export async function drawn(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Lets the page put an enlarged chart back. */
export async function closed(page) {
  await page.waitForFunction(() => !document.querySelector("dialog figure"));
  await drawn(page);
}
