// Sliders, choices and switches. They are made once and then follow each answer, so that what has the focus keeps it.
import { h } from "../dom.js";
import { isFixed, optionName, refusals, stopFor } from "./options.js";

const idOf = (pointer) => `control${pointer.replaceAll("/", "-")}`;

/// What can't be chosen, and why: in the open where nothing can, else behind a summary.
function whyElement(id) {
  const element = h("div", { class: "why", id: `${id}-why` });
  return {
    element,
    follow(control) {
      const all = refusals(control);
      const shown = JSON.stringify(all) + isFixed(control);
      if (element.dataset.shown === shown) return;
      element.dataset.shown = shown;
      if (all.length === 0) return element.replaceChildren();
      if (isFixed(control) && all.length === 1) return element.replaceChildren(h("p", {}, all[0].why));
      const list = h("ul", {}, all.map(({ names, why }) => h("li", {}, h("b", {}, names.join(", ")), `: ${why}`)));
      const summary = h("summary", {}, `not now: ${all.flatMap(({ names }) => names).join(", ")}`);
      element.replaceChildren(h("details", {}, summary, list));
    },
  };
}

function slider(first, choose) {
  const id = idOf(first.pointer);
  let control = first;
  const at = () => control.options.findIndex(({ value }) => value === control.value);
  const output = h("output", { for: id });
  const why = whyElement(id);
  const input = h("input", { type: "range", id, min: 0, step: 1, "aria-describedby": `${id}-why` });
  const show = (stop) => {
    const text = optionName(control.options[stop].value);
    input.value = stop;
    input.setAttribute("aria-valuetext", text);
    output.textContent = text;
  };
  let shown = at();
  input.addEventListener("input", () => {
    const stop = stopFor(control, shown, Number(input.value)) ?? shown;
    if (stop === shown) return show(shown);
    shown = stop;
    show(stop);
    choose(control, control.options[stop].value);
  });
  const follow = (next, busy) => {
    control = next;
    input.max = control.options.length - 1;
    input.disabled = isFixed(control);
    if (!busy || input.disabled) show((shown = at())); // a slider that has moved on meanwhile is not pulled back
    why.follow(control);
  };
  return { element: h("div", { class: "control" }, h("div", { class: "row" }, h("label", { for: id }, first.label), output), input, why.element), follow };
}

function choice(first, choose) {
  const id = idOf(first.pointer);
  let control = first;
  const why = whyElement(id);
  const radios = h("div", { class: "radios" });
  const make = () => {
    radios.replaceChildren(
      ...control.options.map(({ value }, index) =>
        h("label", {}, h("input", { type: "radio", name: id, value: index, change: () => choose(control, control.options[index].value) }), h("span", {}, optionName(value))),
      ),
    );
  };
  const follow = (next) => {
    const others = next.options.length !== radios.children.length;
    control = next;
    if (others) make();
    control.options.forEach(({ value, refused }, index) => {
      const input = radios.children[index].firstChild;
      input.checked = value === control.value;
      input.disabled = refused !== undefined;
    });
    why.follow(control);
  };
  return { element: h("fieldset", { class: "control", "aria-describedby": `${id}-why` }, h("legend", {}, first.label), radios, why.element), follow };
}

function toggle(first, choose) {
  const id = idOf(first.pointer);
  let control = first;
  const why = whyElement(id);
  const input = h("input", { type: "checkbox", role: "switch", id, "aria-describedby": `${id}-why`, change: () => choose(control, input.checked) });
  const follow = (next) => {
    control = next;
    input.checked = control.value === true;
    input.disabled = isFixed(control);
    why.follow(control);
  };
  return { element: h("div", { class: "control" }, h("div", { class: "row switch" }, h("label", { for: id }, first.label), input), why.element), follow };
}

const MAKERS = { slider, choice, switch: toggle };

/// {element, follow}: all controls by group; `choose(control, value)` is called for what is chosen.
export function controlPanel(controls, choose) {
  const made = controls.map((control) => ({ group: control.group, ...MAKERS[control.kind](control, choose) }));
  const groups = [...new Set(controls.map(({ group }) => group))];
  const element = h(
    "form",
    { class: "panel card", "aria-label": "Settings", submit: (event) => event.preventDefault() },
    groups.map((group, index) =>
      h("details", { class: "group", open: true }, h("summary", {}, h("h2", { id: `group-${index}` }, group)), made.filter((one) => one.group === group).map((one) => one.element)),
    ),
  );
  const follow = (next, busy) => made.forEach((one, index) => one.follow(next[index], busy));
  follow(controls, false);
  return { element, follow };
}
