// What the options of a control are called, and why some can't be chosen. Test: web/tests/live.test.mjs.

const NAMES = { true: "on", false: "off" };

export const optionName = (value) => NAMES[value] ?? String(value);

/// The program's reason without what the page shows anyway: that a setting asked, and which.
export function reason(text, pointer) {
  const plain = text.replace(/^--set: /, "");
  return plain.startsWith(`${pointer}: `) ? plain.slice(pointer.length + 2) : plain;
}

/// [{names, why}], options that are refused for one reason together.
export function refusals({ options, pointer }) {
  const groups = new Map();
  for (const { value, refused } of options) {
    if (refused === undefined) continue;
    const why = reason(refused, pointer);
    groups.set(why, [...(groups.get(why) ?? []), optionName(value)]);
  }
  return [...groups].map(([why, names]) => ({ names, why }));
}

/// Whether nothing but the present value can be chosen.
export const isFixed = ({ options, value }) => options.every((option) => option.value === value || option.refused !== undefined);

/// The stop of a slider that is meant by moving from one to another: refused ones are stepped over; null where none is left in that direction.
export function stopFor({ options }, from, to) {
  const step = Math.sign(to - from) || 1;
  for (let stop = to; stop >= 0 && stop < options.length; stop += step) if (options[stop].refused === undefined) return stop;
  return null;
}

/// Settings, the newest last, after one more choice. Back at the scenario's own value it is none.
export function chosen(settings, { pointer, base }, value) {
  const others = settings.filter((setting) => setting.pointer !== pointer);
  return value === base ? others : [...others, { pointer, value }];
}

/// "+12.3 %" of a figure against what it was at the start; nothing where they are alike or one is missing.
export function difference(now, start) {
  if (now == null || start == null || start === 0) return "";
  const share = (100 * (now - start)) / start;
  return Math.abs(share) < 0.05 ? "" : `${share < 0 ? "−" : "+"}${Math.abs(share).toFixed(1)} %`;
}
