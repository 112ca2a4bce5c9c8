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

function showPrompt(prompt) {
  const box = document.getElementById("prompt-box");
  document.getElementById("prompt").textContent = prompt;
  box.open = prompt.length < 400;
  box.hidden = !prompt;
}
