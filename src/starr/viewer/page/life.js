// The life of one token: confidence and threshold over steps, what happened to it, what the model proposed.

function seenSteps(lane, position) {
  const steps = [];
  for (let step = 0; step < lane.steps; step++) if (cellAt(lane, step, position) >= 0) steps.push(step);
  return steps;
}

function showLife(lane, frame, position, redraw) {
  const body = document.getElementById("life-body"), now = document.getElementById("life-now");
  body.hidden = position === null;
  if (position === null) {
    now.textContent = "Hover over, click or focus a token to see its life.";
    return;
  }
  now.replaceChildren(...lifeNow(lane, frame, position));
  const key = `${lane.number}:${position}`;
  if (redraw || body.dataset.key !== key) {
    body.dataset.key = key;
    showActions(lane, position);
    showProposals(lane, position);
    drawLife(lane, position);
  }
  const room = body.chartWidth - FRAME.left - FRAME.right;
  document.getElementById("life-cursor").style.left = FRAME.left + (frame / (lane.steps || 1)) * room + "px";
}

function lifeNow(lane, frame, position) {
  const state = stateAt(lane, frame, position), token = shownToken(lane, frame, position, state);
  const parts = [`Position ${position}, ${lane.title}, step ${frame}: ${STATES[state]} `, tokenCode(lane, token)];
  const cell = cellAt(lane, frame - 1, position);
  if (cell < 0) return parts;
  parts.push(` · confidence ${numberText(lane.confidence[cell])}`);
  if (lane.threshold) parts.push(` · threshold ${numberText(lane.threshold[cell])}`);
  if (lane.lead[cell]) parts.push(` · best ${numberText(lane.confidence[cell] + lane.lead[cell])}`);
  parts.push(" · proposal ", tokenCode(lane, lane.proposal[cell]));
  if (!lane.queried[cell]) parts.push(" · not queried");
  return parts;
}

function showActions(lane, position) {
  const list = document.getElementById("life-actions"), items = [];
  for (const step of seenSteps(lane, position)) {
    const cell = cellAt(lane, step, position), action = lane.action[cell], forced = forcedBy(lane, cell);
    if (action === KEEP && !forced) continue;
    const word = action === KEEP ? `kept (decided: ${["keep", "commit", "revoke", "revise"][lane.decided[cell]]})` : ["", "commit", "revoke", "revise"][action];
    const token = tokenAt(lane, action === REVOKE ? step : step + 1, position);
    items.push(element("li", {}, `step ${step + 1}: ${word} `, tokenCode(lane, token), forced && ` by the ${forced}`));
  }
  list.replaceChildren(...(items.length ? items : [element("li", {}, "nothing yet")]));
}

// What a constraint allows at a cell: how many tokens, and the first of them.
function allowedAt(lane, set) {
  if (!set) return [];
  const [count, first] = lane.sets[set], named = first.flatMap((piece) => [" ", signed("span", piece, JSON.stringify(piece))]);
  return [` of ${count} allowed:`, ...named, count > first.length ? " …" : ""];
}

// Runs of equal proposals from equal sets.
function showProposals(lane, position) {
  const runs = [];
  for (const step of seenSteps(lane, position)) {
    const cell = cellAt(lane, step, position), token = lane.proposal[cell], set = lane.allowed ? lane.allowed[cell] : 0, last = runs.at(-1);
    if (last && last.token === token && last.set === set) last.to = step; else runs.push({ token, set, from: step, to: step });
  }
  document.getElementById("life-proposals").replaceChildren(...runs.map(({ token, set, from, to }) =>
    element("li", {}, from === to ? `step ${from + 1} ` : `steps ${from + 1} to ${to + 1} `, tokenCode(lane, token), ...allowedAt(lane, set))));
}

function drawLife(lane, position) {
  const canvas = document.getElementById("life-chart"), width = canvas.clientWidth, height = 170;
  const ctx = prepare(canvas, width, height), steps = seenSteps(lane, position);
  const value = (column, step) => column[cellAt(lane, step, position)];
  const known = (column, step) => (value(column, step) === UNKNOWN ? null : value(column, step) / GRAIN);
  const tops = lane.threshold ? steps.map((step) => known(lane.threshold, step) ?? 0) : [];
  const { x, y } = axes(ctx, width, height, timeAxis([lane.steps]), Math.max(1, ...tops), "steps", Math.min(0, ...tops));
  const points = (column) => steps.map((step) => {
    const at = known(column, step);
    return [x(step + 1), at === null ? null : y(at)];
  });
  if (lane.threshold) line(ctx, points(lane.threshold), css("revised"), [6, 4]);
  line(ctx, points(lane.confidence), css("held"));
  for (const step of steps) {
    const cell = cellAt(lane, step, position);
    for (const kind of marksOf(lane, cell)) mark(ctx, kind, x(step + 1), y(known(lane.confidence, step) ?? 0), kind === "progress" ? 7 : 5);
  }
  document.getElementById("life-body").chartWidth = width;
  canvas.setAttribute("aria-label", `Confidence and threshold of position ${position} over ${lane.steps} steps`);
  document.getElementById("life-key").textContent = "── confidence" + (lane.threshold ? "  ╌╌ threshold" : "") + "  ● commit  ✕ revoke  ◆ revise  ▲ slow label  ▼ fast label  □ progress rule";
}
