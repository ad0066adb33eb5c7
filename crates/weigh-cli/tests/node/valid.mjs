// The page is HTML as the standard has it.

import assert from "node:assert/strict";
import { file, need } from "./browser.mjs";

const { HtmlValidate, formatterFactory } = need("html-validate");
const validate = new HtmlValidate({
  root: true,
  extends: ["html-validate:recommended"],
  rules: {
    // Cells of a heat map have shades that no class could name.
    "no-inline-style": "off",
    // Matters of taste: the page is written for its size, and by a template.
    "long-title": "off",
    "no-trailing-whitespace": "off",
    "void-style": "off",
  },
});
const report = await validate.validateFile(file);
assert.ok(report.valid, formatterFactory("text")(report.results));
console.log("valid");
