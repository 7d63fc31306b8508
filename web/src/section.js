// A section of the page: its title, what it says in words, its drawing, and the same figures as a table.
import { h } from "./dom.js";
import { KINDS } from "./sections/index.js";
import { table } from "./table.js";

/// A table that is made when it is first opened: it may be long. {details, refresh}
function alternative(section, make) {
  const details = h("details", { class: "alternative" }, h("summary", {}, section.kind === "folded_table" ? "Show" : "Show as table"));
  const refresh = () => {
    const [summary, old] = details.children;
    if (details.open || old) details.replaceChildren(summary, table(make(section), section.title));
  };
  details.addEventListener("toggle", () => details.children.length === 1 && refresh(), { once: true });
  return { details, refresh };
}

/// {element, draw, update}: `draw` is called whenever the width has changed, `update` with other data of the same kind. A section with state of its own (zoom, choices) keeps it
/// in `state`.
export function sectionElement(section, id) {
  const kind = KINDS[section.kind];
  const place = h("div", { class: "drawing" });
  const heading = h("h2", { id: `${id}-title` }, section.title);
  const caption = section.text && h("p", { class: "takeaway" }, section.text);
  const element = h("section", { id, class: `card ${section.kind}`, "aria-labelledby": `${id}-title` }, heading, caption, kind.draw && place);
  const folded = kind.table && alternative(section, kind.table);
  if (folded) element.append(folded.details);
  let body = kind.body?.(section);
  if (body) element.append(body);
  const state = {};
  let width = 0;
  const drawn = () => kind.draw && place.replaceChildren(...[kind.draw(section, width, state, drawn)].flat());
  const draw = () => {
    width = place.clientWidth;
    drawn();
  };
  const update = (data) => {
    Object.assign(section, data);
    if (caption) caption.textContent = section.text;
    folded?.refresh();
    if (body) body.replaceWith((body = kind.body(section)));
    drawn(); // the width is known: to ask for it anew would lay out the whole page first
  };
  return { element, draw, update };
}
