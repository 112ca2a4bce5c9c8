// What a lane looks like at a frame. Frame k is the canvas after k steps; step k − 1 led to it.

const STATES = ["masked", "fresh", "held", "revoked", "revised", "settled", "frozen"];
const STATE = Object.fromEntries(STATES.map((word, index) => [word, index]));

// The place of (step, position) in the columns, −1 where the step's window does not reach.
function cellAt(lane, step, position) {
  if (step < 0 || step >= lane.steps) return -1;
  const [start, end] = lane.windows[step];
  return position < start || position >= end ? -1 : lane.offsets[step] + position - start;
}

function tokenAt(lane, frame, position) {
  return lane.canvas[frame * lane.length + position];
}

function stateAt(lane, frame, position) {
  const masked = tokenAt(lane, frame, position) === 0;
  const cell = cellAt(lane, frame - 1, position);
  const action = cell < 0 ? KEEP : lane.action[cell];
  if (masked) return action === REVOKE ? STATE.revoked : STATE.masked;
  if (action === COMMIT) return STATE.fresh;
  if (action === REVISE) return STATE.revised;
  if (tokenAt(lane, 0, position) !== 0) return STATE.frozen;
  return lane.lastSeen[position] < frame ? STATE.settled : STATE.held;
}

// The token to show: for a revoked position the one it lost.
function shownToken(lane, frame, position, state) {
  return tokenAt(lane, state === STATE.revoked ? frame - 1 : frame, position);
}

function isSpecial(piece) {
  return /^<\|.*\|>$|^(<s>|<\/s>|<pad>|<eos>|<bos>)$/.test(piece);
}

// A token's text as the canvas shows it: end-of-text and its kin are one small sign until whitespace is asked for.
function shownText(piece, whitespace) {
  if (piece === "") return "∅";
  if (!whitespace) return isSpecial(piece) ? "∎" : piece;
  return piece.replaceAll(" ", "·").replaceAll("\t", "→\t").replaceAll("\n", "⏎\n");
}

// The text of a token; null for a mask.
function pieceOf(lane, token) {
  return token === 0 ? null : lane.pieces[token];
}

// A token's text on one line.
function quoted(piece) {
  return piece === null ? "▒" : piece.replaceAll("\n", "⏎").replaceAll("\t", "→").replace(/^ /, "␣") || "∅";
}

function numberText(value) {
  return value === UNKNOWN ? "unknown" : (value / GRAIN).toFixed(3);
}

// Confidence minus threshold in thousandths; null where there is nothing to compare.
function marginAt(lane, cell) {
  if (!lane.threshold || lane.threshold[cell] === UNKNOWN || lane.confidence[cell] === UNKNOWN) return null;
  return lane.confidence[cell] - lane.threshold[cell];
}

// Why an action was not what the threshold alone says: "slow label", "fast label", "progress rule" or "".
function forcedBy(lane, cell) {
  if (lane.action[cell] !== lane.decided[cell]) return "progress rule";
  if (lane.label && lane.action[cell] !== KEEP && lane.label[cell] === SLOW) return "slow label";
  if (lane.label && lane.action[cell] !== KEEP && lane.label[cell] === FAST) return "fast label";
  return "";
}

// The block-causal lane's position before which every block is sealed at a frame; 0 for other lanes.
function sealedUntil(lane, frame) {
  if (!lane.blocks.length) return 0;
  if (frame === lane.steps) return lane.length;
  const open = lane.windows[frame][0];
  return Math.max(0, ...lane.blocks.filter((start) => start <= open));
}

// The classes that frame a sealed block: its first and last cells close the frame.
function borderOf(lane, position, sealed) {
  if (position >= sealed) return "";
  const first = lane.blocks.includes(position), last = position + 1 === sealed || lane.blocks.includes(position + 1);
  return " sealed" + (first ? " first" : "") + (last ? " last" : "");
}

// The last frame reached at time t of a clock.
function frameAt(lane, clock, time) {
  const times = lane.curves[clock];
  let low = 0, high = lane.steps;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= time + 1e-6) low = middle; else high = middle - 1;
  }
  return low;
}

// Positions of the map: trailing end-of-text after the first is folded away where it is long. The last canvas decides.
function foldAt(lane) {
  const last = tokenAt(lane, lane.steps, lane.length - 1);
  if (last === 0 || !isSpecial(lane.pieces[last])) return lane.length;
  let end = lane.length;
  while (end > 0 && tokenAt(lane, lane.steps, end - 1) === last) end -= 1;
  return lane.length - end > 4 ? end + 1 : lane.length;
}

// The cell of the first commit; −1 without one.
function firstCommit(lane) {
  return lane.action.indexOf(COMMIT);
}

// The same for tokens that are no end-of-text; the first commit of all where there is none.
function firstWord(lane) {
  const cell = lane.action.findIndex((action, index) => action === COMMIT && !isSpecial(lane.pieces[lane.proposal[index]]));
  return cell < 0 ? firstCommit(lane) : cell;
}

// The frame after a cell's step; the end without a cell.
function frameAfter(lane, cell) {
  return cell < 0 ? lane.steps : lane.offsets.findIndex((offset) => offset > cell);
}

function positionOf(lane, cell) {
  const step = frameAfter(lane, cell) - 1;
  return cell < 0 ? null : lane.windows[step][0] + cell - lane.offsets[step];
}

function hasBlocks(lane) {
  return lane.windows.some(([start]) => start !== lane.windows[0][0]);
}
