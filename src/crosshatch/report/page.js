"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plot = document.getElementById("curves");
  const metric = document.getElementById("metric");
  const log = document.getElementById("log");
  const buttons = [...document.querySelectorAll(".legend button")];
  // the thinner above the wider
  const order = [...data.runs.keys()].sort((a, b) => data.runs[b].width - data.runs[a].width);
  const shown = (index) => buttons[index].getAttribute("aria-pressed") === "true";
  // plotly reads a small HTML dialect in names: show them as they are
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const axisKey = () => document.querySelector("input[name=axis]:checked").value;

  function curve(run, index, axis, name, widest) {
    const y = run.y[name] || [];
    const common = { name: plain(run.name), type: "scatter", visible: shown(index), hoverinfo: "text" };
    const line = { color: run.color, dash: run.dash, width: run.width };
    const values = run.values[name] || [];
    const free = run.x[axis].every((value) => value === 0);
    if (free && widest > 0 && y.length) {
      // a run that sends nothing has no curve against bytes: its last value is a level to compare with
      const text = `${plain(run.name)}: ${values[values.length - 1]}<br>costs nothing on this axis`;
      const level = y[y.length - 1];
      const from = log.checked ? smallest(axis) : 0;
      return { ...common, x: [from, widest], y: [level, level], mode: "lines", line, text: [text, text] };
    }
    const text = run.hover.map((hover, i) => `<b>${plain(run.name)}: ${values[i]}</b><br>${hover}`);
    const mode = run.symbol ? "lines+markers" : "lines";
    // a logarithm has no place for the evaluation before training, at cost 0
    const x = run.x[axis].map((value) => (log.checked && value <= 0 ? null : value));
    return { ...common, x, y, mode, line, text, marker: { size: run.width + 5, symbol: run.symbol, color: run.color, maxdisplayed: 12 } };
  }

  function smallest(axis) {
    return Math.min(...data.runs.flatMap((run) => run.x[axis].filter((value) => value > 0)));
  }

  function arrivals(target, axis) {
    const hits = target.arrivals.map((hit, i) => ({ hit, run: data.runs[i], i }))
      .filter((item) => item.hit && shown(item.i) && item.hit[axis] > 0);
    return {
      x: hits.map((item) => item.hit[axis]), y: hits.map((item) => item.hit.value), type: "scatter", mode: "markers",
      hoverinfo: "skip", marker: { size: 15, symbol: "circle-open", color: hits.map((item) => item.run.color), line: { width: 2.5 } },
    };
  }

  // a word where a run diverged, beside the point that its curve has there
  function words(axis, name, falls) {
    return data.runs.filter((run, i) => run.diverged && shown(i) && Number.isFinite(run.diverged.y[name]) && run.diverged.x[axis] > 0)
      .map((run) => ({
        x: log.checked ? Math.log10(run.diverged.x[axis]) : run.diverged.x[axis], y: falls ? Math.log10(run.diverged.y[name]) : run.diverged.y[name],
        text: "diverged", showarrow: true, arrowhead: 0, arrowcolor: run.color, ax: -36, ay: 18, font: { size: 12 },
      }));
  }

  function draw() {
    const axis = axisKey();
    const name = metric.value;
    const widest = Math.max(...data.runs.flatMap((run) => run.x[axis]));
    const goals = data.targets.filter((target) => target.metric === name);
    const falls = name === "suboptimality"; // by powers of ten, when all is well
    document.getElementById("curve-title").textContent = data.titles[name][axis];
    const grid = { zeroline: false, automargin: false, fixedrange: false };
    const tick = axis === "bytes" ? { tickformat: "~s", ticksuffix: "B" } : axis === "sim_seconds" ? { ticksuffix: " s" } : {};
    // at each power of ten, and at 2 and 5 times it while there is room; plotly puts no suffix on the latter
    const logTick = { tickformat: "~s", ticksuffix: "", dtick: widest / smallest(axis) > 1e4 ? 1 : "D2" };
    const label = data.axes[axis] + (log.checked && axis === "sim_seconds" ? " (seconds)" : "");
    const layout = {
      margin: { l: 64, r: 18, t: 30, b: 48 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13 }, hovermode: "closest", uirevision: `${axis} ${name} ${log.checked}`,
      hoverlabel: { align: "left", bgcolor: "#ffffff" },
      xaxis: { ...grid, ...(log.checked ? logTick : tick), title: { text: label }, type: log.checked ? "log" : "linear", rangemode: "tozero" },
      yaxis: { ...grid, automargin: true, ticklabelstandoff: 6, title: { text: data.labels[name] }, ...(falls ? { type: "log", tickformat: "~e", nticks: 6 } : {}) },
      shapes: goals.map((goal) => ({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: goal.value, y1: goal.value, layer: "between", line: { width: 1.5, dash: "dash" },
      })),
      annotations: goals.map((goal) => ({
        xref: "paper", x: 1, xanchor: "right", y: falls ? Math.log10(goal.value) : goal.value, yanchor: goal.higher ? "top" : "bottom", text: goal.label, showarrow: false, font: { size: 12 },
      })),
    };
    layout.annotations.push(...words(axis, name, falls));
    const config = {
      responsive: true, displaylogo: false, showLink: false, showSendToCloud: false, showEditInChartStudio: false, plotlyServerURL: "",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    };
    const traces = [
      ...order.map((index) => curve(data.runs[index], index, axis, name, widest)), ...goals.map((goal) => arrivals(goal, axis)),
    ];
    return Plotly.react(plot, traces, layout, config);
  }

  metric.addEventListener("change", draw);
  log.addEventListener("change", draw);
  for (const tab of document.querySelectorAll("input[name=axis]")) tab.addEventListener("change", draw);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      draw();
    });
  }
  draw();
})();
