// The map: a row for every step, a column for every position. Drawn once; only the two cursors move while scrubbing.

const AXIS = { left: 48, top: 34 };
const LEAST_CELL = 6, MOST_CELL = 24, FOLD = 14;
const LEAST_TOP = 190, LEAST_SIDE = 38;  // room for the words along the top (with folded end-of-text) and along the side

// Sizes of a cell, how many columns there are, and the width of the strip that stands for folded end-of-text.
function mapSizes(lane, room, zoom, whole) {
  const columns = whole ? lane.length : foldAt(lane), strip = columns < lane.length ? FOLD : 0;
  const even = Math.min(MOST_CELL, Math.max(0, room - AXIS.left - strip - 2) / columns);
  const width = zoom === "fit" ? (even >= LEAST_CELL ? Math.floor(even) : even) : Number(zoom);
  return { width, height: Math.max(LEAST_CELL, Math.min(width, 14)), columns, strip };
}

function drawMap(lane, canvas, size) {
  const { width: w, height: h } = size;
  const cells = AXIS.left + w * size.columns + size.strip + 2;
  const full = { width: size.strip ? Math.max(cells, LEAST_TOP) : cells, height: AXIS.top + Math.max(h * lane.steps, LEAST_SIDE) + 2 };
  canvas.style.width = full.width + "px";
  canvas.style.height = full.height + "px";
  const ctx = prepare(canvas, full.width, full.height);
  drawCells(ctx, lane, size);
  drawMarks(ctx, lane, size);
  drawBorders(ctx, lane, size);
  drawMapAxes(ctx, lane, size, full.width);
  if (size.strip) drawFold(ctx, lane, size, full.width);
  canvas.setAttribute("aria-label",
    `Map of ${lane.title}: ${lane.length} positions by ${lane.steps} steps. Arrow keys move through steps and positions.`);
}

// A cell that this forward did not query keeps its last confidence and is drawn as a thin bar.
function drawCells(ctx, lane, { width: w, height: h, columns }) {
  const colours = ramp();
  lane.windows.forEach(([start, end], step) => {
    for (let position = start; position < Math.min(end, columns); position++) {
      const cell = lane.offsets[step] + position - start, margin = marginAt(lane, cell);
      const value = margin === null ? (lane.confidence[cell] - 500) / 500 : margin / 500;
      ctx.fillStyle = colours[100 + Math.round(100 * Math.max(-1, Math.min(1, value)))];
      const x = AXIS.left + position * w, y = AXIS.top + step * h, fresh = lane.queried[cell];
      ctx.fillRect(x, fresh ? y : y + h * 0.35, w, fresh ? h : h * 0.3);
    }
  });
}

function drawMarks(ctx, lane, { width: w, height: h, columns }) {
  const r = Math.min(w, h) * (Math.min(w, h) < 9 ? 0.5 : 0.36);
  lane.windows.forEach(([start, end], step) => {
    for (let position = start; position < Math.min(end, columns); position++) {
      const cell = lane.offsets[step] + position - start;
      if (lane.action[cell] === KEEP && lane.decided[cell] === KEEP) continue;
      const x = AXIS.left + (position + 0.5) * w, y = AXIS.top + (step + 0.5) * h;
      for (const kind of marksOf(lane, cell)) mark(ctx, kind, x, y, kind === "progress" ? Math.min(w, h) * 0.46 : r);
    }
  });
}

// A frame around the steps of each window.
function drawBorders(ctx, lane, { width: w, height: h, columns }) {
  ctx.strokeStyle = css("ink");
  ctx.lineWidth = 1;
  let first = 0;
  for (let step = 1; step <= lane.steps; step++) {
    const [start, end] = lane.windows[first];
    if (step < lane.steps && lane.windows[step][0] === start && lane.windows[step][1] === end) continue;
    const left = Math.min(start, columns), wide = (Math.min(end, columns) - left) * w;
    if (wide > 0) ctx.strokeRect(AXIS.left + left * w + 0.5, AXIS.top + first * h + 0.5, wide, (step - first) * h);
    first = step;
  }
}

function drawMapAxes(ctx, lane, { width: w, height: h, columns }, wide) {
  ctx.fillStyle = css("soft");
  const everyPosition = [2, 4, 8, 16, 32, 64, 128].find((every) => w * every >= 40) ?? 256, everyStep = [2, 5].find((every) => h * every >= 24) ?? 10;
  ctx.textAlign = "left";
  ctx.fillText("position →", AXIS.left, 11);
  ctx.save();
  ctx.translate(11, AXIS.top + 34);
  ctx.rotate(-Math.PI / 2);
  ctx.fillText("← step", 0, 0);
  ctx.restore();
  for (let position = 0; position < columns && AXIS.left + position * w < wide - 18; position += everyPosition)
    ctx.fillText(position, AXIS.left + position * w, AXIS.top - 5);
  ctx.textAlign = "right";
  for (let step = everyStep; step <= lane.steps; step += everyStep)
    ctx.fillText(step, AXIS.left - 5, AXIS.top + (step - 0.5) * h + 4);
  ctx.textAlign = "left";
}

// The strip at the right: as many end-of-text tokens as it stands for.
function drawFold(ctx, lane, { width: w, height: h, columns, strip }, wide) {
  const left = AXIS.left + columns * w + 3, count = lane.length - columns;
  ctx.fillStyle = css("key");
  ctx.fillRect(left, AXIS.top, strip - 3, h * lane.steps);
  ctx.fillStyle = css("soft");
  ctx.textAlign = "right";
  ctx.fillText(`+ ${count} × ∎`, wide - 2, 11);
  ctx.textAlign = "left";
}

// (step, position) under a point of the map.
function mapCell(lane, size, x, y) {
  const position = Math.floor((x - AXIS.left) / size.width), step = Math.floor((y - AXIS.top) / size.height);
  return { position: Math.max(0, Math.min(lane.length - 1, size.columns, position)), step: Math.max(0, Math.min(lane.steps - 1, step)) };
}

function place(node, shown, left, top, width, height) {
  node.hidden = !shown;
  if (shown) Object.assign(node.style, { left: left + "px", top: top + "px", width: width + "px", height: height + "px" });
}

// The row of the last step taken and the column of the chosen position; the row is kept in sight.
function showMapCursors(lane, size, frame, position) {
  const { width: w, height: h } = size, box = document.getElementById("map-scroll");
  const y = AXIS.top + (frame - 1) * h, x = AXIS.left + Math.min(position ?? 0, size.columns) * w;
  place(document.getElementById("map-step"), frame > 0, AXIS.left - 1, y - 1, w * size.columns + 2, h + 2);
  place(document.getElementById("map-position"), position !== null, x - 1, AXIS.top - 1, w + 2, h * lane.steps + 2);
  if (size.boxHeight < size.mapHeight) {
    if (y < box.scrollTop + AXIS.top) box.scrollTop = Math.max(0, y - AXIS.top);
    else if (y + h > box.scrollTop + size.boxHeight - 20) box.scrollTop = y + h - size.boxHeight + 20;
  }
}

function showMapLegend(list, note, lane) {
  const bar = element("canvas", { class: "ramp", "aria-hidden": "true" });
  const ctx = prepare(bar, 120, 14);
  ramp().forEach((colour, index) => { ctx.fillStyle = colour; ctx.fillRect((index * 120) / 201, 0, 1, 14); });
  const low = lane.threshold ? "0.5 below" : "confidence 0", high = lane.threshold ? "0.5 above the threshold" : "1";
  list.replaceChildren(element("li", {}, low, bar, high));
  for (const [kind, meaning] of Object.entries(MARKS)) {
    const sample = element("canvas", { "aria-hidden": "true" });
    mark(prepare(sample, 16, 16), kind, 8, 8, 5);
    list.append(element("li", {}, sample, meaning));
  }
  list.append(element("li", {}, "▬ thin: not queried in this forward"), element("li", {}, "▭ frame: window (block)"));
  note.textContent = lane.threshold ? "Colour is confidence minus threshold." :
    "This strategy uses no threshold: colour is confidence.";
  if (foldAt(lane) < lane.length) note.textContent += " The end-of-text tokens (∎) after the answer are folded into one strip.";
}
