// Where two lanes first differ, and their final texts compared. The comparison itself was made in compare.py.

function pairOf(differences, a, b) {
  const swapped = a > b;
  const found = differences.find((pair) => pair.a === Math.min(a, b) && pair.b === Math.max(a, b));
  return found && { ...found, swapped };
}

function showDifference(data, lanes, a, b, jump) {
  const pair = pairOf(data.differences, a, b), parting = document.getElementById("parting");
  const table = document.getElementById("parting-cells"), text = document.getElementById("compare");
  const names = [`${a + 1} ${lanes[a].title}`, `${b + 1} ${lanes[b].title}`];
  document.getElementById("compare-key").replaceChildren(element("del", {}, `only in ${names[0]}`), " · ", element("ins", {}, `only in ${names[1]}`));
  table.replaceChildren();
  if (!pair) {
    parting.textContent = "Choose two lanes.";
    text.textContent = "";
    return;
  }
  showParting(parting, table, pair, names, jump);
  const tags = pair.swapped ? { first: "ins", second: "del" } : { first: "del", second: "ins" };
  text.replaceChildren(...pair.text.map(([side, words]) => (side === "same" ? words : element(tags[side], {}, words))));
}

function showParting(parting, table, { parting: found, swapped }, names, jump) {
  if (!found) {
    parting.textContent = "The two lanes never differ: every step left the same canvas.";
    return;
  }
  const go = element("button", { id: "go-parting" }, `Go to step ${found.step}`);
  go.addEventListener("click", () => jump(found.step, found.cells[0][0]));
  parting.replaceChildren(`The canvases first differ after step ${found.step}, at ${found.count} ${found.count === 1 ? "position" : "positions"}. `, go);
  const piece = (text) => element("td", {}, pieceCode(text));
  table.append(element("tr", {}, ...["position", ...names].map((name) => element("th", { scope: "col" }, name))));
  for (const [position, left, right] of found.cells)
    table.append(element("tr", {}, element("th", { scope: "row" }, String(position)), piece(swapped ? right : left), piece(swapped ? left : right)));
  const rest = found.count - found.cells.length;
  if (rest > 0) table.append(element("tr", {}, element("td", { colspan: 3 }, `and ${rest} more ${rest === 1 ? "position" : "positions"}, not listed`)));
}
