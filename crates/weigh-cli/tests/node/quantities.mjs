// Quantities are written by the script as by everybody else.
//
// usage: quantities.mjs EXPECTED.json SOURCES; EXPECTED holds [scale, value, words] each.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [, , expected, sources] = process.argv;
const source = readFileSync(join(sources, "quantity.js"), "utf8");
const shown = new Function(`${source}; return shown;`)();
const quantities = JSON.parse(readFileSync(expected, "utf8"));
for (const [scale, value, words] of quantities) assert.equal(shown(scale, value), words, `${value} ${scale}`);
console.log(`${quantities.length} quantities`);
