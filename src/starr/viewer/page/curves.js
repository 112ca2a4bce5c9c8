// The curves over the chosen clock. Drawn once for lane, clock, size and theme; a cursor shows the time.

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

const CHARTS = {
  masks: { title: () => "Masks left", draw: drawMasks },
  actions: { title: () => "Commits (up) and revocations (down) per step", draw: drawActions },
  confidence: { title: (lane) => "Confidence of the masks: least (dashed), mean (solid)" + (lane.threshold ? "; band: thresholds" : ""), draw: drawConfidence },
  positions: { title: () => "Positions queried per step", draw: drawPositions },
};

function buildCharts(box) {
  for (const key of Object.keys(CHARTS)) {
    const canvas = element("canvas", { role: "img" }), cursor = element("div", { class: "cursor" });
    const caption = element("figcaption");
    box.append(element("figure", { class: "chart", "data-chart": key }, canvas, cursor, caption));
    Object.assign(CHARTS[key], { canvas, cursor, caption });
  }
}

function greatest(values) {
  return Math.max(0, ...values.filter((value) => value !== null));
}

function drawCharts(lanes, lane, clock, axis) {
  for (const chart of Object.values(CHARTS)) {
    const width = chart.canvas.clientWidth, height = 170;
    const ctx = prepare(chart.canvas, width, height);
    chart.draw(ctx, { lanes, lane, clock, axis, width, height });
    chart.caption.textContent = chart.title(lane);
    chart.canvas.setAttribute("aria-label", `${chart.title(lane)}, ${lane.title}, over ${clock}`);
    chart.width = width;
  }
}

function drawMasks(ctx, { lanes, clock, axis, width, height }) {
  const most = Math.max(...lanes.map((lane) => lane.length));
  const { x, y } = axes(ctx, width, height, axis, most, clock);
  const curves = lanes.map((lane) => lane.curves.masks.map((masks, frame) => [x(lane.curves[clock][frame]), y(masks)]));
  curves.forEach((points, index) => line(ctx, points, css("lane" + index), DASHES[index]));
  if (lanes.length > 1) laneKeys(ctx, lanes, curves, width, height);
}

function laneKeys(ctx, lanes, curves, width, height) {
  const names = lanes.map(({ title }) => cut(title, 28));
  const wide = 40 + Math.max(...names.map((name) => ctx.measureText(name).width)), high = 15 * names.length;
  const { left, top, hidden } = roomiest(curves.flatMap(dense), wide, high, width, height);
  CHARTS.masks.canvas.dataset.hidden = hidden;
  ctx.fillStyle = css("paper");
  ctx.fillRect(left, top, wide, high);
  names.forEach((name, index) => {
    const base = top + 11 + 15 * index;
    ctx.fillStyle = css("ink");
    ctx.fillText(name, left + 34, base);
    line(ctx, [[left, base - 4], [left + 28, base - 4]], css("lane" + index), DASHES[index]);
  });
}

// A curve's points and some between them.
function dense(points) {
  const shares = Array.from({ length: 16 }, (_, index) => index / 16);
  return points.slice(1).flatMap(([x, y], index) => shares.map((share) => [x + (points[index][0] - x) * share, y + (points[index][1] - y) * share]));
}

// Where a box hides the fewest points of the curves; of equals the one further up, then further right.
function roomiest(points, wide, high, width, height) {
  const across = width - FRAME.left - FRAME.right - wide - 12, down = height - FRAME.top - FRAME.bottom - high - 6;
  let best = null;
  for (const share of [0, 0.25, 0.5, 0.75, 1]) for (const other of [1, 0.75, 0.5, 0.25, 0]) {
    const left = FRAME.left + 6 + other * across, top = FRAME.top + 3 + share * down;
    const hidden = points.filter(([x, y]) => x > left - 4 && x < left + wide + 4 && y > top - 3 && y < top + high + 3).length;
    if (best === null || hidden < best.hidden) best = { left, top, hidden };
  }
  return best;
}

function bars(ctx, lane, clock, x, values, y, zero) {
  values.forEach((value, step) => {
    const right = x(lane.curves[clock][step + 1]), left = Math.min(x(lane.curves[clock][step]), right - 1);
    const gap = right - left > 4 ? 1 : 0;
    ctx.fillRect(left, Math.min(y(value), zero), Math.max(1, right - left - gap), Math.abs(y(value) - zero));
  });
}

function drawActions(ctx, { lane, clock, axis, width, height }) {
  const { commits, revocations } = lane.curves, up = greatest(commits) || 1, down = greatest(revocations);
  const bottom = height - FRAME.bottom, zero = FRAME.top + ((bottom - FRAME.top) * up) / (up + down);
  const { x } = axes(ctx, width, height, axis, 0, clock);
  ctx.fillStyle = css("paper");
  ctx.fillRect(0, 0, FRAME.left - 1, bottom + 6);
  const y = (value) => zero - (value / up) * (zero - FRAME.top);
  ctx.fillStyle = css("held");
  bars(ctx, lane, clock, x, commits, y, zero);
  ctx.fillStyle = css("revoked");
  bars(ctx, lane, clock, x, revocations.map((count) => -count), y, zero);
  ctx.fillStyle = css("soft");
  ctx.textAlign = "right";
  ctx.fillText(up, FRAME.left - 5, FRAME.top + 8);
  ctx.fillText(0, FRAME.left - 5, zero + 4);
  if (down && bottom - zero > 14) ctx.fillText(down, FRAME.left - 5, bottom + 2);
  ctx.textAlign = "left";
}

function drawConfidence(ctx, { lane, clock, axis, width, height }) {
  const { least, mean, low, high } = lane.curves, times = lane.curves[clock];
  const most = Math.max(1, greatest(high)), deepest = Math.min(0, ...low.filter((value) => value !== null));
  const { x, y } = axes(ctx, width, height, axis, most, clock, deepest);
  ctx.fillStyle = css("revised");
  ctx.globalAlpha = 0.4;
  low.forEach((value, step) => {
    if (value === null) return;
    const top = y(high[step]), base = y(value);
    ctx.fillRect(x(times[step]), top - 1, Math.max(1, x(times[step + 1]) - x(times[step])), Math.max(2, base - top + 2));
  });
  ctx.globalAlpha = 1;
  const points = (values) => values.map((value, step) => [x(times[step + 1]), value === null ? null : y(value)]);
  line(ctx, points(least), css("ink"), [5, 4]);
  line(ctx, points(mean), css("held"));
}

function drawPositions(ctx, { lane, clock, axis, width, height }) {
  const most = greatest(lane.curves.queried) || 1;
  const { x, y, bottom } = axes(ctx, width, height, axis, most, clock);
  ctx.fillStyle = css("soft");
  bars(ctx, lane, clock, x, lane.curves.queried, y, bottom);
}

function showChartCursors(time, axis) {
  for (const { cursor, width } of Object.values(CHARTS))
    cursor.style.left = FRAME.left + axis.share(time) * (width - FRAME.left - FRAME.right) + "px";
}

// The time under a point of a chart.
function chartTime(canvas, x, axis) {
  const share = (x - FRAME.left) / (canvas.clientWidth - FRAME.left - FRAME.right);
  return axis.time(Math.max(0, Math.min(1, share)));
}
