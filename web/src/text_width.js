// Widths of texts in drawings, near enough for their margins.
const CHARACTER = 6.6; // pixels, at 12 pixels of the page's fonts

export const textWidth = (text) => CHARACTER * text.length;

export function shortened(text, width) {
  const room = Math.max(2, Math.floor(width / CHARACTER));
  return text.length > room ? `${text.slice(0, room - 1)}…` : text;
}
