// The lanes: a card for each with its text canvas, progress, figures and, at the end, its flag.
// All text of a trace goes through textContent; nothing is ever read as HTML.

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A text that may stand as the canvas's sign of end-of-text; the text itself is then the tooltip.
function signed(tag, piece, text) {
  return piece !== null && isSpecial(piece) ? element(tag, { title: piece }, shownText(piece, false)) : element(tag, {}, text);
}

const pieceCode = (piece) => signed("code", piece, quoted(piece));
const tokenCode = (lane, token) => pieceCode(pieceOf(lane, token));

function buildLane(lane) {
  const name = element("button", { class: "name", "aria-pressed": "false" }, lane.title);
  const status = element("p", { class: "status" });
  const progress = element("progress", { max: lane.length, value: 0, "aria-label": `${lane.title}: positions decided` });
  const text = element("div", { class: "text", tabindex: "0", role: "listbox", "aria-label": `Text of lane ${lane.number + 1}, ${lane.title}` });
  const cells = Array.from({ length: lane.length }, (_, position) => {
    const cell = element("span", { role: "option", id: `lane${lane.number}-${position}`, "data-position": position });
    text.append(cell);
    return cell;
  });
  const card = element("article", { class: "lane", "aria-label": `Lane ${lane.number + 1}: ${lane.title}` },
    element("div", { class: "row" }, name, status), progress, text);
  lane.view = { card, name, status, progress, text, cells, shown: new Int32Array(lane.length).fill(-1), frame: -1 };
  return card;
}

// Writes only the cells that differ from what is shown.
function showText(lane, frame, whitespace, redraw) {
  const { cells, shown } = lane.view;
  if (!redraw && lane.view.frame === frame) return;
  const sealed = sealedUntil(lane, frame);
  for (let position = 0; position < lane.length; position++) {
    const state = stateAt(lane, frame, position);
    const token = shownToken(lane, frame, position, state);
    const key = (token * 8 + state) * 2 + (position < sealed);
    if (shown[position] === key && !redraw) continue;
    shown[position] = key;
    const cell = cells[position], word = STATES[state];
    cell.className = word + borderOf(lane, position, sealed);
    cell.textContent = state === STATE.masked ? "▒" : shownText(lane.pieces[token], whitespace);
    cell.dataset.id = state === STATE.revoked ? -1 : lane.ids[token];
    cell.setAttribute("aria-label", `${position} ${word} ${quoted(pieceOf(lane, token))}`);
  }
  lane.view.frame = frame;
  lane.view.progress.value = lane.length - lane.curves.masks[frame];
}

// The text box is as high as the final text from the start, so nothing below it moves while scrubbing.
function keepHeight(lane, whitespace) {
  lane.view.text.style.minHeight = "0";
  showText(lane, lane.steps, whitespace, true);
  lane.view.text.style.minHeight = lane.view.text.offsetHeight + "px";
}

const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;

function showStatus(lane, frame) {
  const { status } = lane.view, done = frame === lane.steps;
  const taken = lane.curves.revocations.slice(0, frame).reduce((sum, count) => sum + count, 0);
  const masks = lane.curves.masks[frame];
  status.classList.toggle("flag", done);
  status.dataset.done = done;
  status.textContent = done ? flagText(lane, taken, masks) : `step ${frame} of ${lane.steps} · ${counted(masks, "mask")} left · ${taken} revoked`;
}

function flagText(lane, taken, masks) {
  const speed = lane.stats.tokens_per_forward, parts = [`⚑ ${counted(Math.round(lane.curves.forwards.at(-1)), "forward")}`];
  if (speed !== undefined) parts.push(`${speed.toFixed(2)} tokens per forward`);
  parts.push(`${taken} revoked`);
  if (masks) parts.push(`${counted(masks, "mask")} left`);
  if (lane.right !== null) parts.push(lane.right ? "✓ right" : "✗ wrong");
  if (lane.formed !== null) parts.push(lane.formed ? "✓ well formed" : "✗ not well formed");
  if (lane.right !== null && lane.formed !== null) parts.push(lane.right && lane.formed ? "✓ both" : "✗ not both");
  return parts.join(" · ");
}

// Marks the chosen position in the chosen lane, and only there.
function showPick(lanes, chosen, position) {
  for (const lane of lanes) {
    const { text, cells, card, name } = lane.view, own = lane === chosen, key = own ? position : -1;
    if (lane.view.pick === key && (key === null || key < 0 || cells[key].classList.contains("picked"))) continue;
    lane.view.pick = key;
    card.classList.toggle("chosen", own && lanes.length > 1);
    name.setAttribute("aria-pressed", own);
    text.querySelector(".picked")?.classList.remove("picked");
    text.removeAttribute("aria-activedescendant");
    if (!own || position === null || position >= lane.length) continue;
    cells[position].classList.add("picked");
    text.setAttribute("aria-activedescendant", cells[position].id);
  }
}

// What "held" means depends on the lanes: a strategy that never revokes keeps what it has committed.
function heldMeaning(lanes) {
  const able = lanes.filter((lane) => lane.revokes);
  if (able.length === lanes.length) return MEANINGS.held;
  return able.length ? `${MEANINGS.held} in lane ${able.map((lane) => lane.number + 1).join(", ")}; kept in the others` : "committed, stays";
}

function showLegend(list, lanes) {
  for (const [word, meaning] of Object.entries({ ...MEANINGS, held: heldMeaning(lanes) })) {
    const sample = element("span", { class: `sample ${word}` }, word === "masked" ? "▒" : "token");
    list.append(element("li", {}, sample, `${word}: ${meaning}`));
  }
}
