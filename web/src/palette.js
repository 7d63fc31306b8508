// Steps of one colour for figures from low to high, and what can be read on each. Colours are properties of page.css.
export const STEPS = 7;

/// Which step a value between low and high has.
export function step(value, low, high) {
  if (!(high > low)) return STEPS - 2;
  return Math.min(STEPS - 1, Math.floor(((value - low) / (high - low)) * STEPS));
}

const CLASSES = ["blue", "orange", "green", "pink", "violet", "teal", "brown", "red", "cyan", "lime", "indigo", "yellow"];
/// Colours of classes that have none of their own.
export const classColour = (index) => `var(--${CLASSES[index % CLASSES.length]})`;
