// One state, one way: input → change(part of the state) → show(). Nothing else writes to the page.

const at = (id) => document.getElementById(id);
const CLOCKS = ["forwards", "positions", "milliseconds"], PACE = 6;

let data, lanes;
const view = { time: 0, clock: "forwards", lane: 0, position: null, peek: null, whitespace: false, theme: "light", speed: 1, zoom: "fit", whole: false, a: 0, b: 1, playing: false };
const drawn = { key: "", size: null };

const chosenLane = () => lanes[view.lane];
const timesOf = () => lanes.map((lane) => lane.curves[view.clock].at(-1));
const total = () => Math.max(...timesOf());
const frameOf = (lane) => frameAt(lane, view.clock, view.time);

let pending = false;
function change(part) {
  Object.assign(view, part);
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; show(); });
}

// Everything that does not depend on the time: drawn again only when lane, clock, theme or size change.
function drawStill() {
  const lane = chosenLane();
  const key = [view.lane, view.clock, view.theme, view.zoom, view.whole, view.whitespace, view.a, view.b, innerWidth, innerHeight].join();
  if (drawn.key === key) return false;
  drawn.key = key;
  setTheme(view.theme);
  document.querySelectorAll(".lane-name").forEach((node) => { node.textContent = lanes.length > 1 ? `of lane ${view.lane + 1}, ${lane.title}` : ""; });
  lanes.forEach((each) => keepHeight(each, view.whitespace));
  drawn.size = mapSizes(lane, at("map-scroll").clientWidth, view.zoom, view.whole);
  drawn.axis = timeAxis(timesOf());
  drawMap(lane, at("map"), drawn.size);
  drawn.size.boxHeight = at("map-scroll").clientHeight;
  drawn.size.mapHeight = at("map").clientHeight;
  showMapLegend(at("map-legend"), at("map-note"), lane);
  drawCharts(lanes, lane, view.clock, drawn.axis);
  showPair();
  showControls();
  return true;
}

function showPair() {
  const pair = `${view.a},${view.b}`;
  if (lanes.length < 2 || drawn.pair === pair) return;
  drawn.pair = pair;
  showDifference(data, lanes, view.a, view.b, jumpToParting);
}

function showControls() {
  at("space").setAttribute("aria-pressed", view.whitespace);
  at("theme").setAttribute("aria-pressed", view.theme === "dark");
  at("clock").value = view.clock;
  at("zoom").value = view.zoom;
  at("whole").checked = view.whole;
  at("whole-box").hidden = foldAt(chosenLane()) === chosenLane().length;
  at("block").disabled = !hasBlocks(chosenLane());
  at("revocation").disabled = !chosenLane().curves.revocations.some((count) => count > 0);
  at("first").value = view.a;
  at("second").value = view.b;
  at("scrub").max = total();
}

function show() {
  const redraw = drawStill(), lane = chosenLane(), frame = frameOf(lane), picked = view.peek ?? view.position;
  showMapCursors(lane, drawn.size, frame, picked);
  for (const each of lanes) {
    showText(each, frameOf(each), view.whitespace, redraw);
    showStatus(each, frameOf(each));
  }
  showPick(lanes, lane, picked);
  showLife(lane, frame, picked, redraw);
  showChartCursors(view.time, drawn.axis);
  at("now").textContent = `${Math.round(view.time)} of ${inUnits(total(), view.clock)}`;
  at("scrub").value = view.time;
  at("scrub").setAttribute("aria-valuetext", at("now").textContent);
  at("speed").value = view.speed;
  at("play").textContent = view.playing ? "❚❚ Pause" : "▶ Play";
  at("play").setAttribute("aria-label", view.playing ? "Pause" : "Play");
  writeLink();
}

function say(text) {
  at("say").textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { at("say").textContent = ""; }, 2500);
}

async function main() {
  data = await readData();
  lanes = data.lanes.map(openLane);
  at("lanes").append(...lanes.map(buildLane));
  showAbout(lanes);
  showSummary(lanes);
  showPrompt(lanes[0].prompt);
  at("difference").hidden = lanes.length < 2;
  for (const id of ["first", "second"]) at(id).append(...lanes.map((lane, index) => element("option", { value: index }, `${index + 1} ${lane.title}`)));
  showLegend(at("legend"), lanes);
  buildCharts(at("charts"));
  view.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  listen();
  readLink();
  show();
  document.documentElement.dataset.ready = "true";
  playOnce();
}

main();
