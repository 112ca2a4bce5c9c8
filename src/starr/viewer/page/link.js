// The link that carries the state, and where a page without one opens.

function linkText() {
  const words = { t: Number(view.time.toFixed(2)), p: view.position, lane: view.lane || null, clock: view.clock === "forwards" ? null : view.clock,
    w: view.whitespace ? 1 : null, theme: view.theme, a: view.a === 0 ? null : view.a, b: view.b === 1 ? null : view.b };
  return Object.entries(words).filter(([, value]) => value !== null).map(([key, value]) => `${key}=${value}`).join("&");
}

// Browsers bound how often an address may change, so it follows a moment later.
function writeLink(now = false) {
  clearTimeout(writeLink.timer);
  if (location.protocol === "about:") return;  // shown inside another page, which owns the address
  const write = () => history.replaceState(null, "", "#" + linkText());
  if (now) write(); else writeLink.timer = setTimeout(write, 200);
}

function readLink() {
  const words = new URLSearchParams(location.hash.slice(1));
  const whole = (key, most) => {
    const value = words.get(key);
    return value !== null && /^\d+$/.test(value) && Number(value) <= most ? Number(value) : null;
  };
  view.lane = whole("lane", lanes.length - 1) ?? 0;
  view.clock = CLOCKS.includes(words.get("clock")) ? words.get("clock") : "forwards";
  view.position = whole("p", chosenLane().length - 1);
  view.whitespace = words.get("w") === "1";
  if (["light", "dark"].includes(words.get("theme"))) view.theme = words.get("theme");
  view.a = whole("a", lanes.length - 1) ?? 0;
  view.b = whole("b", lanes.length - 1) ?? Math.min(1, lanes.length - 1);
  const time = Number(words.get("t") ?? NaN);
  if (Number.isFinite(time)) view.time = Math.max(0, Math.min(total(), time));
  else openAtFirstWord();
}

// A page without a time in its link plays once, from the start, unless its reader wants no motion.
function playOnce() {
  const asked = new URLSearchParams(location.hash.slice(1)).has("t");
  if (asked || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  view.time = 0;
  play();
}

// A page without a time in its link opens where something is to be seen: every lane has made its first commits, the chosen
// one has committed a word, and the panel shows the life of that token.
function openAtFirstWord() {
  const chosen = chosenLane(), frame = (lane) => frameAfter(lane, lane === chosen ? firstWord(lane) : firstCommit(lane));
  view.time = Math.max(...lanes.map((lane) => lane.curves[view.clock][frame(lane)]));
  view.position ??= positionOf(chosen, firstWord(chosen));
}
