// Figures as people read them. Tests: web/tests/format.test.mjs.
// toLocaleString makes such an object at each call, which takes longer than all the rest of a page.
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const SIGNIFICANT = new Map([4, 5].map((n) => [n, new Intl.NumberFormat("en-US", { maximumSignificantDigits: n })]));
const digits = (value, n) => SIGNIFICANT.get(n).format(Number(value.toPrecision(n)));

export function time(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  const [factor, unit] = size >= 1 ? [1, "s"] : size >= 1e-3 ? [1e3, "ms"] : size >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${digits(seconds * factor, 4)} ${unit}`;
}

export function bytes(value) {
  const size = Math.abs(value);
  const [power, unit] = size >= 2 ** 30 ? [30, "GiB"] : size >= 2 ** 20 ? [20, "MiB"] : size >= 2 ** 10 ? [10, "KiB"] : [0, "B"];
  return `${digits(value / 2 ** power, 4)} ${unit}`;
}

/// With a decimal prefix: rates.
export function rate(value, unit) {
  const size = Math.abs(value);
  const [power, prefix] = size >= 1e12 ? [12, "T"] : size >= 1e9 ? [9, "G"] : size >= 1e6 ? [6, "M"] : size >= 1e3 ? [3, "k"] : [0, ""];
  return `${digits(value / 10 ** power, 4)} ${prefix}${unit}`;
}

export const percent = (share) => `${(100 * share).toFixed(1)} %`;
export const count = (value) => WHOLE.format(Math.round(value));

/// A figure with its unit: s, B, FLOP/s, B/s, share (0 to 1), ratio, or none.
export function figure(value, unit) {
  if (value == null) return "–";
  if (unit === "s") return time(value);
  if (unit === "B") return bytes(value);
  if (unit === "FLOP/s" || unit === "B/s") return rate(value, unit);
  if (unit === "ratio") return value.toFixed(3);
  return unit === "share" ? percent(value) : digits(value, 5);
}

/// "all_gather" -> "all-gather".
export const words = (name) => name.replace(/^gap_/, "").replaceAll("_", " ").replace(/\b(all|reduce) (gather|scatter|reduce)\b/g, "$1-$2");
