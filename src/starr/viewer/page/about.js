// What stands above the pictures: the model and the run, what the answer had to keep to, the prompt.

const MOST_BOUND = 72;

function cut(text, most) {
  const signs = [...text];
  return signs.length > most ? signs.slice(0, most - 1).join("") + "…" : text;
}

// The kind and the text of a constraint as words.
function boundWords(constraint) {
  const [, kind, text] = constraint.match(/^(\w+): (.*)$/s) ?? [null, "constraint", constraint];
  return [kind === "json_schema" ? "JSON schema" : kind, kind === "regex" ? text : unescaped(text)];
}

// JSON with its letters as they are; any other text stays as it is.
function unescaped(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

// One line for a constraint, which names its lanes where others are free of it.
function boundLine(constraint, lanes) {
  const own = lanes.filter((lane) => lane.constraint === constraint), [kind, text] = boundWords(constraint), shown = cut(text, MOST_BOUND);
  const whose = own.length < lanes.length ? `lane ${own.map((lane) => lane.number + 1).join(", ")} · ` : "";
  return element("p", { class: "note" }, `${whose}${kind}: `, element("code", shown === text ? {} : { title: text }, shown),
    " · confidences are of the allowed tokens");
}

function showAbout(lanes) {
  const models = [...new Set(lanes.map((lane) => lane.model))].join(", ");
  document.getElementById("about").textContent =
    `${models} · ${lanes.length === 1 ? lanes[0].title : lanes.length + " lanes"} · ${lanes[0].length} positions` +
    (lanes[0].answer ? ` · right answer: ${lanes[0].answer}` : "");
  const bounds = new Set(lanes.map((lane) => lane.constraint).filter(Boolean));
  document.getElementById("bounds").replaceChildren(...[...bounds].map((constraint) => boundLine(constraint, lanes)));
}

const forwardsOf = (lane) => lane.curves.forwards.at(-1);
const isGood = (lane) => lane.right !== false && lane.formed !== false;
const isGraded = (lane) => lane.right !== null || lane.formed !== null;

// "right and well formed", "wrong"; nothing where no task grades the answer.
function gradeWords(lane) {
  const parts = [];
  if (lane.right !== null) parts.push(lane.right ? "right" : "wrong");
  if (lane.formed !== null) parts.push(lane.formed ? "well formed" : "not well formed");
  return parts.join(isGood(lane) ? " and " : ", ");
}

const laneLine = (lane) => `${lane.title}: ${inUnits(forwardsOf(lane), "forwards")}${isGraded(lane) ? `, ${gradeWords(lane)}` : ""}`;

// Who won: the fewest forwards among the lanes whose answers are not known to be wrong or badly formed.
function summaryText(lanes) {
  if (lanes.length === 1) return laneLine(lanes[0]);
  const good = lanes.filter(isGood);
  if (!good.length) return `No lane won: no answer is right and well formed. ${lanes.map(laneLine).join(" · ")}`;
  const least = Math.min(...good.map(forwardsOf)), winners = good.filter((lane) => forwardsOf(lane) === least);
  const others = lanes.filter((lane) => !winners.includes(lane));
  const names = winners.map((lane) => lane.title).join(" and ");
  const grade = isGraded(winners[0]) ? `, ${gradeWords(winners[0])}` : "";
  const most = others.filter(isGood).map(forwardsOf), margin = most.length ? `, ${Math.min(...most) - least} fewer than the next` : "";
  const head = `${names} ${winners.length > 1 ? "tie" : "won"}: ${inUnits(least, "forwards")}${winners.length > 1 ? "" : margin}${grade}.`;
  return [head, ...others.map(laneLine)].join(" · ").replace(". · ", ". ");
}

function showSummary(lanes) {
  document.getElementById("summary").textContent = summaryText(lanes);
}

function showPrompt(prompt) {
  const box = document.getElementById("prompt-box");
  document.getElementById("prompt").textContent = prompt;
  box.open = prompt.length < 400;
  box.hidden = !prompt;
}
