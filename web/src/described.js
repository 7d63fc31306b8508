// The name of a drawing for those who do not see it.

/// Drawings have role "img" and a name: their marks are not read out one by one, the table beside them is.
export function described(svg, section) {
  for (const mark of svg.querySelectorAll("g[aria-label]")) {
    mark.dataset.mark = mark.getAttribute("aria-label"); // the library's names of marks are no names for people
    mark.removeAttribute("aria-label");
  }
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${section.title}. ${section.text}`);
  return svg;
}
