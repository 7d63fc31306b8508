// A waterfall as shares of a step. Test: web/tests/format.test.mjs.

/// Each loss with what was left before and after it, as shares of the step.
export function steps(section) {
  let left = 1;
  return section.losses.map(({ loss, seconds }) => {
    const before = left;
    left -= seconds / section.step_time_s;
    return { loss, seconds, before, left };
  });
}
