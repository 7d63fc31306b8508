// Reads the page's data and draws it: head, figures, then each section by its kind. Contract of the data: docs/page.md.
import { h } from "./dom.js";
import { sectionElement } from "./section.js";

const data = JSON.parse(document.getElementById("data").textContent);

function tile({ label, value, note }) {
  return h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, h("strong", {}, value), note && h("span", {}, note)));
}

function head() {
  return h(
    "header",
    {},
    h("p", { class: "brand" }, h("span", { class: "mark", "aria-hidden": "true" }), `stepcast ${data.command}`),
    h("h1", {}, data.title),
    h("p", { class: "headline" }, data.headline),
    data.tiles.length > 0 && h("dl", { class: "tiles" }, data.tiles.map(tile)),
    data.notices.map((text) => h("p", { class: "notice", role: "note" }, text)),
  );
}

const id = (index) => `section-${index + 1}`;

function contents() {
  if (data.sections.length < 3) return null;
  const links = data.sections.map(({ title }, index) => h("li", {}, h("a", { href: `#${id(index)}` }, title)));
  return h("nav", { "aria-label": "Sections" }, h("ul", {}, links));
}

const sections = data.sections.map((section, index) => sectionElement(section, id(index)));
const main = h("main", {}, sections.map(({ element }) => element));
const foot = h("footer", {}, `Written by stepcast ${data.version}. This file is complete in itself and asks nothing of any network.`);
document.title = `${data.title}: stepcast ${data.command}`;
document.getElementById("page").append(...[head(), contents(), main, foot].filter(Boolean));

let drawn = 0;
function draw() {
  const width = main.clientWidth;
  if (width === drawn) return;
  drawn = width;
  for (const section of sections) section.draw();
}
draw();
new ResizeObserver(() => requestAnimationFrame(draw)).observe(main);
