(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const plot = by("curves");
  const [metric, log, range] = [by("metric"), by("log"), by("range")];
  const buttons = [...document.querySelectorAll(".legend button")];
  // the thinner above the wider
  const order = [...data.runs.keys()].sort((a, b) => data.runs[b].width - data.runs[a].width);
  const shown = (index) => buttons[index].getAttribute("aria-pressed") === "true";
  const finite = (values) => values.filter(Number.isFinite);
  const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const HEIGHT = 440;
  let near = []; // what can be pointed at

  // of several seeds the lowest and the highest, of others the curve itself
  const side = (run, which, name) => (run[which] || run.y)[name] || [];

  // a run that sends nothing has no curve against bytes: its last value is a level to compare with
  const isFree = (run, axis, widest) => widest > 0 && run.x[axis].every((value) => value === 0);

  // From the second evaluation on, and without the tenth of each curve that is furthest from good: there they differ.
  function telling(run, name, axis, widest) {
    const y = run.y[name] || [];
    if (isFree(run, axis, widest)) return finite(y).slice(-1);
    const from = y.length > 2 ? 1 : 0;
    const low = finite(side(run, "low", name).slice(from)).sort((a, b) => a - b);
    const high = finite(side(run, "high", name).slice(from)).sort((a, b) => a - b);
    if (!low.length) return [];
    const skip = Math.floor(low.length / 10);
    const better = data.higher[name];
    return [low[better === true ? skip : 0], high[high.length - 1 - (better === false ? skip : 0)]];
  }

  // A curve that never came a tenth of the way of the best says nothing about where the others differ.
  function moving(runs, name) {
    const sign = { true: 1, false: -1 }[data.higher[name]];
    const courses = runs.map((run) => finite(run.y[name] || []).map((value) => sign * value));
    const starts = courses.filter((course) => course.length).map((course) => course[0]).sort((a, b) => a - b);
    const start = starts[Math.floor(starts.length / 2)];
    const way = most(courses.flat()) - start;
    return sign && starts.length ? runs.filter((_, i) => most(courses[i]) - start >= way / 10) : runs;
  }

  function heights(name, axis, widest, goals, byTens) {
    const visible = data.runs.filter((_, i) => shown(i));
    const well = visible.filter((run) => !run.diverged);
    const all = (run) => finite([...side(run, "low", name), ...side(run, "high", name)]);
    let values = range.value === "differ" && !byTens ? moving(well.length ? well : visible, name).flatMap((run) => telling(run, name, axis, widest)) : visible.flatMap(all);
    if (values.length) values = [...values, ...goals.map((goal) => goal.value)];
    if (byTens) values = values.filter((value) => value > 0);
    if (!values.length) return { low: byTens ? 0.1 : 0, high: 1, log: byTens, kind: "value" };
    const [low, high] = [least(values), most(values)];
    if (byTens) return { low: low / 1.2, high: high * 1.2, log: true, kind: "value" };
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return { low: low - room, high: high + room, log: false, kind: "value" };
  }

  function cost(run, i) {
    return `round ${plots.count(run.x.round[i])}, ${plots.bytes(run.x.bytes[i])}, ${plots.seconds(run.x.sim_seconds[i])}`;
  }

  function curve(run, name, axis, x, y, widest, left, right) {
    const values = run.y[name] || [];
    if (isFree(run, axis, widest) && Number.isFinite(values[values.length - 1])) {
      const level = y.place(values[values.length - 1]);
      const text = [`${run.name}: ${plots.number(values[values.length - 1])}`, "costs nothing on this axis"];
      for (let at = left; at <= right; at += 12) near.push({ x: at, y: level, text, run });
      return plots.line([[left, level], [right, level]], run);
    }
    // a logarithm has no place for the evaluation before training, at cost 0
    const place = (value, i) => (Number.isFinite(value) && (!y.log || value > 0) && (!x.log || run.x[axis][i] > 0) ? [x.place(run.x[axis][i]), y.place(value)] : null);
    const points = values.map(place);
    points.forEach((at, i) => {
      const spread = run.low ? [`${plots.number(run.low[name][i])} to ${plots.number(run.high[name][i])} over seeds`] : [];
      if (at) near.push({ x: at[0], y: at[1], text: [`${run.name}: ${plots.number(values[i])}`, ...spread, cost(run, i)], run });
    });
    const marked = run.symbol || points.filter(Boolean).length === 1;
    return (run.low ? plots.band(side(run, "low", name).map(place), side(run, "high", name).map(place), run) : "") + plots.line(points, run)
      + (marked ? plots.symbols(points, run, Math.max(3, Math.min(12, Math.round(72 / data.runs.length)))) : "");
  }

  function draw() {
    const axis = document.querySelector("input[name=axis]:checked").value;
    const name = metric.value;
    const goals = data.targets.filter((target) => target.metric === name);
    const visible = data.runs.filter((_, i) => shown(i));
    const costs = (visible.length ? visible : data.runs).flatMap((run) => run.x[axis]);
    const widest = most(costs);
    const positive = costs.filter((value) => value > 0);
    const byTens = range.value === "log" || (name === "suboptimality" && range.value === "differ");
    const across = { low: log.checked && positive.length ? least(positive) : 0, high: widest || 1, log: log.checked && positive.length > 0, kind: axis };
    const upward = heights(name, axis, widest, goals, byTens);

    const width = Math.max(plot.clientWidth, 240);
    const [top, bottom] = [10, HEIGHT - 26];
    const y = { ...plots.axis(upward, bottom, top, 7), log: upward.log };
    const left = Math.ceil(most([3, ...y.ticks.map((tick) => tick.text.length)]) * 7.2) + 12;
    const right = width - 16;
    const x = { ...plots.axis(across, left, right, Math.floor((right - left) / 75)), log: across.log };

    near = [];
    const drawn = order.filter(shown).map((i) => `<g class="curve" data-run="${i}">${curve(data.runs[i], name, axis, x, y, widest, left, right)}</g>`);
    const inside = (at) => at.y >= top && at.y <= bottom && at.x >= left - 1 && at.x <= right + 1;
    const seen = near.filter(inside);
    const away = data.runs.filter((run) => near.some((at) => at.run === run) && !seen.some((at) => at.run === run)).map((run) => run.name);
    const who = away.length > 1 ? `${away.length} curves lie` : away.length ? `${away[0]} lies` : "Some points lie";
    by("outside").textContent = `${who} outside: choose all values.`;
    by("outside").hidden = seen.length === near.length;
    near = seen;

    const grid = y.ticks.map((tick) => `<path class="grid" d="M${left} ${tick.at}H${right}"/><text class="ytick" x="${left - 8}" y="${tick.at + 4}">${tick.text}</text>`);
    let taken = -Infinity;
    for (const tick of x.ticks) {
      const half = tick.text.length * 3.6;
      const at = Math.min(tick.at, width - half - 2);
      grid.push(`<path class="grid" d="M${tick.at} ${top}V${bottom}"/>`);
      if (at - half < taken) continue;
      taken = at + half + 10;
      grid.push(`<text class="xtick" x="${at}" y="${HEIGHT - 6}">${tick.text}</text>`);
    }
    const lines = goals.filter((goal) => !y.log || goal.value > 0).map((goal) => {
      const at = y.place(goal.value);
      const hits = goal.arrivals.map((hit, i) => ({ hit, i })).filter(({ hit, i }) => hit && shown(i) && hit[axis] > 0 && (!y.log || hit.value > 0));
      return `<path class="goal" d="M${left} ${at}H${right}"/><text class="goal" x="${right}" y="${goal.higher ? at + 15 : at - 6}">${goal.label}</text>`
        + hits.map(({ hit, i }) => `<circle class="arrival" cx="${x.place(hit[axis])}" cy="${y.place(hit.value)}" r="7.5" stroke="${data.runs[i].color}"/>`).join("");
    });
    // a word where a run diverged, beside the point that its curve has there, or at the edge it left by
    const lost = data.runs.filter((run, i) => run.diverged && shown(i) && Number.isFinite(run.diverged.y[name]) && (!y.log || run.diverged.y[name] > 0) && run.diverged.x[axis] > 0)
      .map((run) => {
        const at = [x.place(run.diverged.x[axis]), Math.min(Math.max(y.place(run.diverged.y[name]), top), bottom - 22)];
        const [end, anchor] = at[0] - left > 96 ? [at[0] - 26, "end"] : [at[0] + 26, "start"];
        return `<path class="lost" d="M${at[0]} ${at[1]}L${end} ${at[1] + 15}" stroke="${run.color}"/><text class="lost" text-anchor="${anchor}" x="${end}" y="${at[1] + 20}">diverged</text>`;
      });
    // an inner svg, because that cuts off what lies outside of it
    const frame = `<svg x="${left - 8}" y="${top}" width="${right - left + 16}" height="${bottom - top}" viewBox="${left - 8} ${top} ${right - left + 16} ${bottom - top}">${drawn.join("")}</svg>`;
    by("drawing").innerHTML = `<svg viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-labelledby="curve-title">${grid.join("")}<path class="edge" d="M${left} ${top}V${bottom}H${right}"/>${frame}${lines.join("")}${lost.join("")}</svg>`;
    by("curve-title").textContent = data.titles[name][axis];
    by("x-title").textContent = data.axes[axis];
    by("y-title").textContent = data.labels[name];
    by("hover").hidden = true;
  }

  function point(event) {
    const box = plot.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const distance = (at) => Math.hypot(at.x - x, at.y - y);
    const best = near.reduce((found, at) => (found && distance(found) <= distance(at) ? found : at), null);
    const hover = by("hover");
    hover.hidden = !best || distance(best) > 48;
    if (hover.hidden) return;
    hover.replaceChildren(...best.text.map((text, i) => Object.assign(document.createElement(i ? "div" : "b"), { textContent: text })));
    hover.style.borderColor = best.run.color;
    const across = Math.min(Math.max(best.x - hover.offsetWidth / 2, 0), box.width - hover.offsetWidth);
    const above = best.y - hover.offsetHeight - 12;
    hover.style.transform = `translate(${Math.max(across, 0)}px, ${above > 0 ? above : best.y + 12}px)`;
  }

  function press(index, on) {
    buttons[index].setAttribute("aria-pressed", String(on));
    // curves of other test rows never stand beside each other
    if (on) buttons.forEach((other, i) => { if (data.runs[i].rows !== data.runs[index].rows) other.setAttribute("aria-pressed", "false"); });
  }

  function single(index) {
    for (const one of plot.querySelectorAll(".curve")) one.classList.toggle("faint", index !== null && Number(one.dataset.run) !== index);
  }

  // headings, keys and comments of a config, coloured when it is opened
  function colour(pre) {
    const parts = pre.textContent.split("\n").flatMap((text, i) => {
      const kind = /^\s*#/.test(text) ? "comment" : text.startsWith("[") ? "section" : "setting";
      const end = kind === "setting" ? (/^\s*[\w."'-]+(?=\s*=)/.exec(text) || [""])[0].length : text.length;
      return [i ? "\n" : "", Object.assign(document.createElement("span"), { className: kind, textContent: text.slice(0, end) }), text.slice(end)];
    });
    pre.replaceChildren(...parts);
  }

  for (const control of [metric, log, range, ...document.querySelectorAll("input[name=axis]")]) control.addEventListener("change", draw);
  buttons.forEach((button, i) => {
    button.addEventListener("click", () => { press(i, !shown(i)); draw(); });
    button.addEventListener("dblclick", () => {
      const alone = buttons.every((_, other) => shown(other) === (other === i));
      buttons.forEach((_, other) => press(other, alone || other === i));
      draw();
    });
    button.addEventListener("pointerenter", () => single(shown(i) ? i : null));
    button.addEventListener("pointerleave", () => single(null));
  });
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", () => { by("hover").hidden = true; });
  for (const details of document.querySelectorAll("details.config")) details.addEventListener("toggle", () => colour(details.querySelector("pre")), { once: true });
  let drawnAt = plot.clientWidth;
  new ResizeObserver(() => { if (plot.clientWidth !== drawnAt) { drawnAt = plot.clientWidth; draw(); } }).observe(plot);
  draw();
})();
