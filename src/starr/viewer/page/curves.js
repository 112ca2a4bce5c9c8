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
  lanes.forEach((lane, index) => {
    const points = lane.curves.masks.map((masks, frame) => [x(lane.curves[clock][frame]), y(masks)]);
    line(ctx, points, css("lane" + index), DASHES[index]);
    if (lanes.length > 1) laneKey(ctx, lane, index, width);
  });
}

// Names stand in the upper right, where a falling curve leaves room.
function laneKey(ctx, lane, index, width) {
  const y = FRAME.top + 12 + 15 * index, right = width - FRAME.right;
  const name = lane.title.length > 28 ? lane.title.slice(0, 27) + "…" : lane.title;
  const start = right - 6 - ctx.measureText(name).width;
  ctx.fillStyle = css("paper");
  ctx.fillRect(start - 36, y - 10, right - start + 36, 14);
  ctx.fillStyle = css("ink");
  ctx.fillText(name, start, y);
  line(ctx, [[start - 34, y - 4], [start - 6, y - 4]], css("lane" + index), DASHES[index]);
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
