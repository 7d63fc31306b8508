// A section of the page: its title, what it says in words, its drawing, and the same figures as a table.
import { h } from "./dom.js";
import { KINDS } from "./sections/index.js";
import { table } from "./table.js";

/// A table that is made when it is first opened: it may be long.
function alternative(section, make) {
  const details = h("details", { class: "alternative" }, h("summary", {}, section.kind === "folded_table" ? "Show" : "Show as table"));
  details.addEventListener("toggle", () => details.children.length === 1 && details.append(table(make(section), section.title)), { once: true });
  return details;
}

/// {element, draw}: `draw` is called whenever the width has changed. A section with state of its own (zoom, choices) keeps it in `state`.
export function sectionElement(section, id) {
  const kind = KINDS[section.kind];
  const place = h("div", { class: "drawing" });
  const heading = h("h2", { id: `${id}-title` }, section.title);
  const caption = section.text && h("p", { class: "takeaway" }, section.text);
  const element = h("section", { id, class: `card ${section.kind}`, "aria-labelledby": `${id}-title` }, heading, caption, kind.draw && place);
  if (kind.table) element.append(alternative(section, kind.table));
  if (kind.body) element.append(kind.body(section));
  const state = {};
  const draw = () => kind.draw && place.replaceChildren(...[kind.draw(section, place.clientWidth, state, draw)].flat());
  return { element, draw };
}
