// Small helpers for canvases: sizes in CSS pixels, colours from the theme, the diverging ramp, the marks, line charts.

// Colours are read once per theme: asking the browser again after every change of the page would cost a layout each.
const palette = new Map();
function css(name) {
  if (!palette.has(name)) palette.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return palette.get(name);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  palette.clear();
}

function prepare(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = css("paper");
  ctx.fillRect(0, 0, width, height);
  ctx.font = '11px system-ui, "Liberation Sans", sans-serif';
  return ctx;
}

function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mixed(from, to, share) {
  return "rgb(" + from.map((value, index) => Math.round(value + (to[index] - value) * share)).join(",") + ")";
}

// 201 colours for −1 … 1: small differences show most, for they decide.
function ramp() {
  const paper = rgb(css("zero")), below = rgb(css("below")), above = rgb(css("above"));
  return Array.from({ length: 201 }, (_, index) => {
    const value = (index - 100) / 100;
    return mixed(paper, value < 0 ? below : above, Math.sqrt(Math.abs(value)));
  });
}

const MARKS = {
  commit: "commit", revoke: "revoke", revise: "revise",
  slow: "commit by the slow label", fast: "revoke by the fast label", progress: "forced or held back by the progress rule",
};

function path(ctx, points) {
  ctx.beginPath();
  points.forEach(([x, y], index) => (index ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  ctx.closePath();
}

// One mark around (x, y); r is about half of its size.
function mark(ctx, kind, x, y, r) {
  ctx.fillStyle = ctx.strokeStyle = css("ink");
  ctx.lineWidth = Math.max(1, r / 2.2);
  if (kind === "commit") { ctx.beginPath(); ctx.arc(x, y, r * 0.62, 0, 7); ctx.fill(); }
  if (kind === "revoke") {
    ctx.beginPath();
    ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r);
    ctx.stroke();
  }
  if (kind === "revise") { path(ctx, [[x, y - r], [x + r, y], [x, y + r], [x - r, y]]); ctx.fill(); }
  if (kind === "slow") { path(ctx, [[x, y - r], [x + r, y + r * 0.8], [x - r, y + r * 0.8]]); ctx.fill(); }
  if (kind === "fast") { path(ctx, [[x, y + r], [x + r, y - r * 0.8], [x - r, y - r * 0.8]]); ctx.fill(); }
  if (kind === "progress") { ctx.lineWidth = 1; ctx.strokeRect(x - r, y - r, 2 * r, 2 * r); }
}

// The marks of one cell, outermost last.
function marksOf(lane, cell) {
  const action = lane.action[cell], forced = forcedBy(lane, cell), marks = [];
  if (forced === "slow label") marks.push("slow");
  else if (forced === "fast label") marks.push("fast");
  else if (action !== KEEP) marks.push(["", "commit", "revoke", "revise"][action]);
  if (forced === "progress rule") marks.push("progress");
  return marks;
}

const FRAME = { left: 40, right: 12, top: 12, bottom: 28 };

// The shared time axis. Where the slowest lane takes far longer than the quickest, it is logarithmic, so that both can be read.
const UNEVEN = 3;
function timeAxis(totals) {
  const most = Math.max(...totals) || 1, least = Math.min(...totals) || 1;
  if (most / least <= UNEVEN) return { most, log: false, share: (time) => time / most, time: (share) => share * most };
  const unit = least / 10, span = Math.log1p(most / unit);
  return { most, log: true, share: (time) => Math.log1p(time / unit) / span, time: (share) => unit * Math.expm1(share * span) };
}

// Round times to write below the axis: on a logarithmic one 1, 2, 5, 10, 20 …, as far apart as the words need.
function timeTicks(axis, room) {
  const ticks = [];
  if (!axis.log) return ticks;
  for (let power = 1; power < axis.most; power *= 10) for (const digit of [1, 2, 5]) {
    const time = digit * power, before = ticks.at(-1) ?? 0;
    if ((axis.share(time) - axis.share(before)) * room > 30 && (1 - axis.share(time)) * room > 125) ticks.push(time);
  }
  return ticks;
}

// A whole number of steps or of a clock's units, whose names are plural.
function inUnits(number, units) {
  const whole = Math.round(number);
  return `${whole} ${whole === 1 ? units.replace(/s$/, "") : units}`;
}

// Values to write beside the axis: of counts whole ones; of shares 0, ½ and 1 where there is room, and what lies below 0.
function valueTicks(yMin, yMax) {
  if (yMin === null) return [0, Math.round(yMax / 2), yMax];
  return [...new Set(yMax - yMin > 3 ? [yMin, 0, yMax] : [yMin, 0, 0.5, 1])];
}

// Axes of a chart over a time axis; gives the two scales. yMin is given for shares: 0 or what lies below it.
function axes(ctx, width, height, axis, yMax, unit, yMin = null) {
  const right = width - FRAME.right, bottom = height - FRAME.bottom, span = yMax - (yMin ?? 0) || 1;
  const x = (value) => FRAME.left + axis.share(value) * (right - FRAME.left);
  const y = (value) => bottom - ((value - (yMin ?? 0)) / span) * (bottom - FRAME.top);
  ctx.strokeStyle = css("line");
  ctx.fillStyle = css("soft");
  ctx.lineWidth = 1;
  ctx.textAlign = "right";
  for (const value of valueTicks(yMin, yMax)) {
    const at = Math.round(y(value)) + 0.5;
    ctx.beginPath(); ctx.moveTo(FRAME.left, at); ctx.lineTo(right, at); ctx.stroke();
    if (value < 0 && at - y(0) < 11) continue;
    ctx.fillText(Number.isInteger(value) ? value : value.toFixed(1), FRAME.left - 5, at + 4);
  }
  ctx.textAlign = "left";
  ctx.fillText("0", FRAME.left, bottom + 14);
  ctx.textAlign = "right";
  ctx.fillText(inUnits(axis.most, unit) + (axis.log ? " (log)" : ""), right, bottom + 14);
  ctx.textAlign = "center";
  for (const time of timeTicks(axis, right - FRAME.left)) ctx.fillText(time, x(time), bottom + 14);
  ctx.textAlign = "left";
  return { x, y, bottom };
}

// A line through the points that have a value; dash tells lines apart besides colour.
function line(ctx, points, colour, dash = [], width = 2) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.beginPath();
  let open = false;
  for (const [x, y] of points) {
    if (y === null) { open = false; continue; }
    if (open) ctx.lineTo(x, y); else ctx.moveTo(x, y);
    open = true;
  }
  ctx.stroke();
  ctx.setLineDash([]);
}
