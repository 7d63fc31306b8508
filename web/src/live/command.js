// The settings so far, as a command to paste.
import { h } from "../dom.js";

async function copy(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    return "copied";
  } catch {
    getSelection().selectAllChildren(place); // not a secure page: the keys can copy what is selected
    return "selected: copy it with the keyboard";
  }
}

/// {element, follow}; `reset` is called to go back to the scenario as it was.
export function commandPanel(reset) {
  const code = h("code", {});
  const said = h("span", { role: "status" });
  const taken = h("p", { class: "taken" });
  const button = h("button", { type: "button", click: async () => (said.textContent = await copy(code.textContent, code)) }, "Copy");
  const again = h("button", { type: "button", click: reset }, "Start again");
  const element = h(
    "section",
    { class: "card command", "aria-labelledby": "command-title" },
    h("h2", { id: "command-title" }, "Settings so far"),
    h("pre", { tabindex: "0", role: "region", "aria-label": "Command that forecasts the same" }, code),
    taken,
    h("div", { class: "controls" }, button, again, said),
  );
  const follow = ({ run, set, taken_back: back }) => {
    if (code.textContent !== run) said.textContent = "";
    code.textContent = run;
    again.disabled = set.length === 0;
    taken.textContent = back.length > 0 ? `Contradicts the newer settings, and is left at its default: ${back.join(", ")}.` : "";
  };
  return { element, follow };
}
