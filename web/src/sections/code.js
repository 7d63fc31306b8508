// Texts to paste.
import { h } from "../dom.js";

export const body = (section) =>
  h("div", {}, section.blocks.map(({ name, text }) => h("details", {}, h("summary", {}, name), h("pre", { tabindex: "0", role: "region", "aria-label": name }, text))));
