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

const FRAME = { left: 40, right: 12, top: 8, bottom: 28 };

// Axes of a chart; gives the two scales.
function axes(ctx, width, height, xMax, yMax, unit) {
  const right = width - FRAME.right, bottom = height - FRAME.bottom;
  const x = (value) => FRAME.left + (value / (xMax || 1)) * (right - FRAME.left);
  const y = (value) => bottom - (value / (yMax || 1)) * (bottom - FRAME.top);
  ctx.strokeStyle = css("line");
  ctx.fillStyle = css("soft");
  ctx.lineWidth = 1;
  ctx.textAlign = "right";
  for (const share of [0, 0.5, 1]) {
    const value = yMax * share, at = Math.round(y(value)) + 0.5;
    ctx.beginPath(); ctx.moveTo(FRAME.left, at); ctx.lineTo(right, at); ctx.stroke();
    ctx.fillText(Number.isInteger(value) ? value : value.toFixed(yMax <= 2 ? 1 : 0), FRAME.left - 5, at + 4);
  }
  ctx.textAlign = "left";
  ctx.fillText("0", FRAME.left, bottom + 14);
  ctx.textAlign = "right";
  ctx.fillText(Math.round(xMax) + " " + unit, right, bottom + 14);
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
