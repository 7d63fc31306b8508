// A grid of points seen along two of its axes: each cell is the best of the points that it stands for. Test: web/tests/grid.test.mjs.

/// Which value of each axis a point has; the last axis varies fastest.
export function indices(axes, point) {
  const which = Array(axes.length);
  for (let axis = axes.length - 1; axis >= 0; --axis) {
    which[axis] = point % axes[axis].values.length;
    point = Math.floor(point / axes[axis].values.length);
  }
  return which;
}

/// [{x, y, point, value, count}] for axes number x and y (y may be -1: a single row). A cell without any point that ran has value null and its first point.
export function cells({ axes, metrics }, metric, x, y) {
  const { values, high_is_good: high } = metrics[metric];
  const found = new Map();
  values.forEach((value, point) => {
    const which = indices(axes, point);
    const key = `${which[x]} ${y < 0 ? 0 : which[y]}`;
    const cell = found.get(key);
    if (!cell) found.set(key, { x: which[x], y: y < 0 ? 0 : which[y], point, value, count: 1 });
    else {
      ++cell.count;
      if (value != null && (cell.value == null || (high ? value > cell.value : value < cell.value))) Object.assign(cell, { point, value });
    }
  });
  return [...found.values()];
}
