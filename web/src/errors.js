// Errors of forecasts in short, as the program defines them (docs/validate.md, "Comparison"). Test: web/tests/format.test.mjs.

function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  return sorted[below] + (place - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

const sorted = (values) => [...values].sort((a, b) => a - b);

/// Of signed relative errors: median, mean and largest of their sizes, and the median of them as they are.
export function summary(errors) {
  const sizes = sorted(errors.map(Math.abs));
  return { median: quantile(sizes, 0.5), mean: sizes.reduce((sum, size) => sum + size, 0) / sizes.length, largest: sizes.at(-1), bias: quantile(sorted(errors), 0.5) };
}
