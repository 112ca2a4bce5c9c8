// The data inside the page → lanes. The inverse of pack.py: gzip, JSON, differences added up.

const GRAIN = 1000, UNKNOWN = -20 * GRAIN;
const KEEP = 0, COMMIT = 1, REVOKE = 2, REVISE = 3;
const SLOW = 1, FAST = 2;

async function readData() {
  const raw = atob(document.getElementById("data").textContent.trim());
  const bytes = Uint8Array.from(raw, (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Where each step's cells begin in the columns.
function offsetsOf(windows) {
  const offsets = [0];
  for (const [start, end] of windows) offsets.push(offsets.at(-1) + end - start);
  return offsets;
}

function summed(column, windows, length) {
  const values = new Int32Array(column.length), last = new Int32Array(length);
  let index = 0;
  for (const [start, end] of windows)
    for (let position = start; position < end; position++, index++) {
      last[position] += column[index];
      values[index] = last[position];
    }
  return values;
}

function summedRows(column, length) {
  const values = Int32Array.from(column);
  for (let index = length; index < values.length; index++) values[index] += values[index - length];
  return values;
}

function openLane(packed, number) {
  const { windows, length, cells } = packed;
  const whole = (name) => (cells[name] ? summed(cells[name], windows, length) : null);
  const lane = {
    ...packed, number, steps: windows.length, offsets: offsetsOf(windows),
    canvas: summedRows(cells.canvas, length),
    proposal: whole("proposal"), confidence: whole("confidence"), lead: whole("lead"),
    threshold: whole("threshold"), queried: whole("queried"),
    action: Uint8Array.from(cells.action), decided: Uint8Array.from(cells.decided),
    label: cells.label ? Uint8Array.from(cells.label) : null,
    allowed: cells.allowed ? Int32Array.from(cells.allowed) : null,
    lastSeen: new Int32Array(length).fill(-1),
  };
  windows.forEach(([start, end], step) => lane.lastSeen.fill(step, start, end));
  lane.title = lane.strategy + (lane.cache && lane.cache !== "none" ? " + " + lane.cache : "");
  return lane;
}
