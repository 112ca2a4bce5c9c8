// What is shown as one PNG: title, every lane's text at this time, the map and the curves of the chosen lane.

const EDGE = 24, LINE = 20;

function wrapText(ctx, lane, frame, width, whitespace) {
  const rows = [[]];
  let x = 0;
  for (let position = 0; position < lane.length; position++) {
    const state = stateAt(lane, frame, position), token = shownToken(lane, frame, position, state);
    const text = state === STATE.masked ? "▒" : shownText(lane.pieces[token], whitespace);
    text.split("\n").forEach((part, index) => {
      const wide = ctx.measureText(part).width;
      if (index || x + wide > width) { rows.push([]); x = 0; }
      if (part) rows.at(-1).push({ part, x, wide, state });
      x += wide;
    });
  }
  return rows;
}

function paintRow(ctx, row, left, y) {
  for (const { part, x, wide, state } of row) {
    ctx.fillStyle = ctx.strokeStyle = css(STATES[state]);
    ctx.fillText(part, left + x, y);
    ctx.lineWidth = state === STATE.fresh ? 3 : 1.5;
    const under = [STATE.fresh, STATE.revised].includes(state);
    if (state === STATE.revoked) ctx.strokeRect(left + x, y - 13, wide, 17);
    if (under || state === STATE.revoked) {
      ctx.beginPath();
      ctx.moveTo(left + x, under ? y + 4 : y - 4); ctx.lineTo(left + x + wide, under ? y + 4 : y - 4);
      ctx.stroke();
    }
  }
}

function exportPicture({ title, lanes, lane, frames, whitespace }) {
  const map = document.getElementById("map"), charts = Object.values(CHARTS);
  const chartWidth = charts[0].canvas.clientWidth;
  const width = 2 * EDGE + Math.max(850, map.clientWidth, 2 * chartWidth + 24), inner = width - 2 * EDGE;
  const canvas = document.createElement("canvas"), mono = '14px ui-monospace, "DejaVu Sans Mono", monospace';
  const bold = 'bold 15px system-ui, "Liberation Sans", sans-serif';
  const probe = canvas.getContext("2d");
  probe.font = mono;
  const texts = lanes.map((each, index) => wrapText(probe, each, frames[index], inner, whitespace));
  const textHeight = texts.reduce((sum, rows) => sum + (rows.length + 2) * LINE, 0);
  const across = Math.max(1, Math.floor((inner + 24) / (chartWidth + 24)));
  const height = 2 * EDGE + 2 * LINE + textHeight + map.clientHeight + LINE + Math.ceil(charts.length / across) * 200;
  const ctx = prepare(canvas, width, height);
  const write = (text, y, font) => { ctx.font = font; ctx.fillStyle = css("ink"); ctx.fillText(text, EDGE, y); };
  let y = EDGE + 12;
  write(title, y, bold);
  texts.forEach((rows, index) => {
    write(`${lanes[index].title} · ${lanes[index].view.status.textContent}`, (y += 2 * LINE), bold);
    ctx.font = mono;
    for (const row of rows) paintRow(ctx, row, EDGE, (y += LINE));
  });
  write(`Map of ${lane.title}`, (y += 2 * LINE), bold);
  ctx.drawImage(map, EDGE, (y += 8), map.clientWidth, map.clientHeight);
  y += map.clientHeight + LINE;
  charts.forEach((chart, index) => {
    const left = EDGE + (index % across) * (chartWidth + 24), top = y + Math.floor(index / across) * 200;
    ctx.drawImage(chart.canvas, left, top, chartWidth, 170);
    ctx.font = "12px system-ui, sans-serif";
    ctx.fillStyle = css("soft");
    ctx.fillText(chart.caption.textContent, left, top + 182, chartWidth);
  });
  return canvas;
}

function savePng(canvas, name) {
  const address = canvas.toDataURL("image/png");
  element("a", { href: address, download: name }).click();
}
