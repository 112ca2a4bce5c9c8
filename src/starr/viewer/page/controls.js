// Play, steps, keys and pointers.

function goTo(time) {
  change({ time: Math.max(0, Math.min(total(), time)) });
}

// The next (or last) time at which any lane takes a step.
function nextTime(direction) {
  const times = lanes.flatMap((lane) => lane.curves[view.clock]);
  if (direction > 0) return Math.min(total(), ...times.filter((time) => time > view.time + 1e-6));
  return Math.max(0, ...times.filter((time) => time < view.time - 1e-6));
}

function walk(direction, count = 1) {
  for (let index = 0; index < count; index++) view.time = nextTime(direction);
  change({ playing: false });
}

function jumpToStep(step, position = view.position) {
  change({ time: chosenLane().curves[view.clock][Math.min(step, chosenLane().steps)], position, playing: false });
}

// Lanes differ after a step of both, so the clock that counts steps shows it.
function jumpToParting(step, position) {
  Object.assign(view, { lane: view.a, clock: "forwards" });
  jumpToStep(step, position);
}

// The next frame in the chosen lane for which the step before it passes the test.
function seek(direction, test, word) {
  const lane = chosenLane();
  for (let frame = frameOf(lane) + direction; frame > 0 && frame <= lane.steps; frame += direction)
    if (test(lane, frame - 1)) return jumpToStep(frame);
  say(`No ${direction > 0 ? "later" : "earlier"} ${word} in this lane.`);
}

const nextRevocation = (direction) => seek(direction, (lane, step) => lane.curves.revocations[step] > 0, "revocation");
const nextBlock = (direction) =>
  seek(direction, (lane, step) => step === 0 || lane.windows[step][0] !== lane.windows[step - 1][0], "block");

function play() {
  if (view.playing) return change({ playing: false });
  const lasts = Math.max(...lanes.map((lane) => lane.steps)) / PACE;
  let last = performance.now();
  change({ playing: true, time: view.time >= total() ? 0 : view.time });
  const tick = (now) => {
    if (!view.playing) return;
    const time = view.time + ((now - last) / 1000) * (total() / lasts) * view.speed;
    last = now;
    change({ time: Math.min(time, total()), playing: time < total() });
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

function changeClock(clock) {
  const lane = chosenLane(), frame = frameOf(lane), ended = view.time >= total();
  view.clock = clock;
  goTo(ended ? total() : lane.curves[clock][frame]);
}

function movePosition(by) {
  const length = chosenLane().length;
  const position = view.position === null ? 0 : Math.max(0, Math.min(length - 1, view.position + by));
  change({ position, peek: null });
  keepInSight(position);
}

function keepInSight(position) {
  chosenLane().view.cells[position].scrollIntoView({ block: "nearest" });
  const box = at("map-scroll"), x = AXIS.left + Math.min(position, drawn.size.columns) * drawn.size.width;
  if (x < box.scrollLeft + AXIS.left || x > box.scrollLeft + box.clientWidth - 30) box.scrollLeft = x - box.clientWidth / 2;
}

function changeSpeed(by) {
  const values = [...at("speed").options].map((option) => Number(option.value));
  change({ speed: values[Math.max(0, Math.min(values.length - 1, values.indexOf(view.speed) + by))] });
}

async function copyLink() {
  writeLink(true);
  try {
    await navigator.clipboard.writeText(location.href);
    say("Link copied.");
  } catch {
    say("The link is in the address bar.");
  }
}

function exportPng() {
  savePng(exportPicture({ title: document.title, lanes, lane: chosenLane(), frames: lanes.map(frameOf), whitespace: view.whitespace }),
    `starr-${chosenLane().strategy.replace(/[^\w.-]+/g, "-")}-${frameOf(chosenLane())}.png`);
}

function toggleHelp() {
  at("help").hidden = !at("help").hidden;
  at("keys").setAttribute("aria-expanded", !at("help").hidden);
}

const ACTIONS = {
  start: () => goTo(0), end: () => goTo(total()), back: () => walk(-1), on: () => walk(1), play,
  revocation: () => nextRevocation(1), block: () => nextBlock(1),
  space: () => change({ whitespace: !view.whitespace }),
  theme: () => change({ theme: view.theme === "dark" ? "light" : "dark" }),
  link: copyLink, png: exportPng, keys: toggleHelp,
};

const KEYS = {
  ArrowLeft: (event) => walk(-1, event.shiftKey ? 10 : 1), ArrowRight: (event) => walk(1, event.shiftKey ? 10 : 1),
  Home: ACTIONS.start, End: ACTIONS.end, " ": play, "?": toggleHelp,
  r: () => nextRevocation(1), R: () => nextRevocation(-1), b: () => nextBlock(1), B: () => nextBlock(-1),
  Escape: () => change({ position: null, peek: null }),
  c: () => changeClock(CLOCKS[(CLOCKS.indexOf(view.clock) + 1) % CLOCKS.length]),
  w: ACTIONS.space, d: ACTIONS.theme, l: copyLink, e: exportPng, "+": () => changeSpeed(1), "-": () => changeSpeed(-1),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const tag = event.target.tagName, inCanvas = event.target.id === "map" || event.target.classList?.contains("text");
  if (tag === "SELECT" || (event.key === " " && ["BUTTON", "SUMMARY"].includes(tag))) return;
  const vertical = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (vertical && inCanvas) movePosition(vertical);
  else if (/^[1-4]$/.test(event.key) && lanes[event.key - 1]) change({ lane: event.key - 1 });
  else if (KEYS[event.key]) KEYS[event.key](event);
  else return;
  event.preventDefault();
}

function listenToLane(lane) {
  const { text, name } = lane.view, index = lane.number;
  const position = (event) => event.target.dataset.position;
  name.addEventListener("click", () => change({ lane: index }));
  text.addEventListener("focus", () => change({ lane: index, position: view.position ?? 0 }));
  text.addEventListener("click", (event) => position(event) !== undefined && change({ lane: index, position: Number(position(event)), peek: null }));
  text.addEventListener("pointerover", (event) => {
    if (position(event) !== undefined && event.pointerType === "mouse" && view.lane === index) change({ peek: Number(position(event)) });
  });
  text.addEventListener("pointerleave", () => change({ peek: null }));
}

function listenToPictures() {
  const map = at("map");
  const under = (event) => mapCell(chosenLane(), drawn.size, event.offsetX, event.offsetY);
  map.addEventListener("click", (event) => jumpToStep(under(event).step + 1, under(event).position));
  map.addEventListener("pointermove", (event) => event.pointerType === "mouse" && change({ peek: under(event).position }));
  map.addEventListener("pointerleave", () => change({ peek: null }));
  map.addEventListener("focus", () => change({ position: view.position ?? 0 }));
  for (const { canvas } of Object.values(CHARTS))
    canvas.addEventListener("click", (event) => { view.playing = false; goTo(chartTime(canvas, event.offsetX, drawn.axis)); });
}

function listen() {
  for (const [id, act] of Object.entries(ACTIONS)) at(id).addEventListener("click", act);
  at("scrub").addEventListener("input", (event) => { view.playing = false; goTo(Number(event.target.value)); });
  at("clock").addEventListener("change", (event) => changeClock(event.target.value));
  at("speed").addEventListener("change", (event) => change({ speed: Number(event.target.value) }));
  at("zoom").addEventListener("change", (event) => change({ zoom: event.target.value }));
  at("whole").addEventListener("change", (event) => change({ whole: event.target.checked }));
  at("first").addEventListener("change", (event) => change({ a: Number(event.target.value) }));
  at("second").addEventListener("change", (event) => change({ b: Number(event.target.value) }));
  lanes.forEach(listenToLane);
  listenToPictures();
  document.addEventListener("keydown", onKey);
  addEventListener("resize", () => change({}));
  addEventListener("hashchange", () => { if (location.hash.slice(1) !== linkText()) { readLink(); change({}); } });
}
