"use strict";
// Drawing without a library: numbers in words, ticks, and curves as the text of an SVG.
const plots = (() => {
  // the words of units.py, so that what one points at agrees with the tables
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  const power = (value) => Math.floor(Math.log10(Math.abs(value)));
  const threeDigits = (value) => (value === 0 ? "0" : trimmed(value.toFixed(Math.min(20, Math.max(0, 2 - power(value))))));
  const count = (value) => Math.round(value).toLocaleString("en-US");

  function number(value) {
    if (value === 0) return "0";
    const rounded = Number(value.toPrecision(4));
    const size = power(rounded);
    if (size >= -4 && size < 4) return trimmed(rounded.toFixed(3 - size));
    const [digits, exponent] = rounded.toExponential(3).split("e");
    return `${trimmed(digits)}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }

  function bytes(value) {
    let place = 0;
    for (; value >= 999.5 && place < 6; place += 1) value /= 1000;
    return `${place ? threeDigits(value) : Math.round(value)} ${" kMGTPE"[place].trim()}B`;
  }

  function seconds(value) {
    const two = (part) => String(part).padStart(2, "0");
    const minutes = Math.round(value / 60);
    if (value === 0) return "0 s";
    if (value < 0.9995) return `${threeDigits(value * 1000)} ms`;
    if (value < 59.95) return `${threeDigits(value)} s`;
    if (Math.round(value) < 3600) return `${Math.floor(Math.round(value) / 60)} min ${two(Math.round(value) % 60)} s`;
    if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
    const hours = Math.round(value / 3600);
    return hours < 240000 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${count(value / 31557600)} years`;
  }

  // what the ticks of an axis are counted in, given its largest value
  function unit(kind, high) {
    if (kind === "bytes") {
      const place = Math.min(6, Math.max(0, Math.floor(power(high || 1) / 3)));
      return { size: 1000 ** place, suffix: ` ${" kMGTPE"[place].trim()}B`, whole: place === 0 };
    }
    if (kind === "sim_seconds") {
      const [size, suffix] = high < 1 ? [1e-3, " ms"] : high < 180 ? [1, " s"] : high < 10800 ? [60, " min"] : high < 259200 ? [3600, " h"] : [86400, " d"];
      return { size, suffix, whole: false };
    }
    return { size: 1, suffix: "", whole: kind !== "value" };
  }

  function linearTicks(low, high, most, kind) {
    const { size, suffix, whole } = unit(kind, high);
    const rough = (high - low) / size / Math.max(most, 2);
    const ten = 10 ** power(rough || 1);
    let step = ten * [1, 2, 5, 10].find((times) => times * ten >= rough * 0.999);
    if (whole) step = Math.max(step, 1);
    const decimals = Math.max(0, -power(step * 1.001));
    const ticks = [];
    for (let i = Math.ceil(low / size / step - 1e-9); i * step <= (high / size) * (1 + 1e-9) + 1e-12 * step; i += 1) {
      const value = i * step;
      const plain = value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
      const text = i === 0 ? "0" : decimals > 6 || Math.abs(value) >= 1e7 ? number(value) : plain;
      ticks.push({ value: value * size, text: text + (i === 0 ? "" : suffix) });
    }
    return ticks;
  }

  function logTicks(low, high, kind) {
    const decades = Math.log10(high / low);
    const text = { bytes, sim_seconds: (value) => (value < 1 ? `${threeDigits(value * 1000)} ms` : `${count(value)} s`), value: number }[kind] || count;
    const ticks = [];
    for (let place = power(low); place <= power(high); place += Math.max(1, Math.round(decades / 8))) {
      for (const times of decades > 4 ? [1] : [1, 2, 5]) {
        const value = Number(`${times}e${place}`);
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push({ value, text: text(value) });
      }
    }
    return ticks;
  }

  // { low, high, log, kind } between two pixels: where a value is drawn, and ticks whose labels have room
  function axis({ low, high, log, kind }, from, to, most) {
    const along = log ? Math.log10 : (value) => value;
    const span = along(high) - along(low) || 1;
    const place = (value) => Math.max(-5000, Math.min(5000, from + ((along(value) - along(low)) / span) * (to - from)));
    const ticks = (log ? logTicks(low, high, kind) : linearTicks(low, high, most, kind)).map((tick) => ({ ...tick, at: place(tick.value) }));
    return { place, ticks };
  }

  const SYMBOLS = {
    circle: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    square: (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
    diamond: (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0z`,
    triangle: (r) => `M0 ${-1.3 * r}L${1.2 * r} ${r}H${-1.2 * r}z`,
    cross: (r) => `M${-0.4 * r} ${-1.2 * r}h${0.8 * r}v${0.8 * r}h${0.8 * r}v${0.8 * r}h${-0.8 * r}v${0.8 * r}h${-0.8 * r}v${-0.8 * r}h${-0.8 * r}v${-0.8 * r}h${0.8 * r}z`,
    saltire: (r) => `M${-r} ${-0.4 * r}l${0.6 * r} ${-0.6 * r}l${0.4 * r} ${0.4 * r}l${0.4 * r} ${-0.4 * r}l${0.6 * r} ${0.6 * r}l${-0.4 * r} ${0.4 * r}l${0.4 * r} ${0.4 * r}l${-0.6 * r} ${0.6 * r}l${-0.4 * r} ${-0.4 * r}l${-0.4 * r} ${0.4 * r}l${-0.6 * r} ${-0.6 * r}l${0.4 * r} ${-0.4 * r}z`,
  };

  const point = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

  // neighbours in runs: [[a, b], null, [c]] is two pieces
  function pieces(points) {
    const found = [[]];
    for (const one of points) {
      if (one) found[found.length - 1].push(one);
      else if (found[found.length - 1].length) found.push([]);
    }
    return found.filter((piece) => piece.length);
  }

  function line(points, style) {
    const way = pieces(points).map((piece) => `M${piece.map(point).join("L")}`).join("");
    const dash = style.dash ? ` stroke-dasharray="${style.dash}"` : "";
    return `<path class="line" d="${way}" stroke="${style.color}" stroke-width="${style.width}"${dash}/>`;
  }

  function band(low, high, style) {
    const both = low.map((one, i) => (one && high[i] ? [one, high[i]] : null));
    const way = pieces(both).map((piece) => `M${[...piece.map((pair) => pair[0]), ...piece.map((pair) => pair[1]).reverse()].map(point).join("L")}z`);
    return `<path class="band" d="${way.join("")}" fill="${style.color}"/>`;
  }

  function symbols(points, style, most) {
    const there = points.filter(Boolean);
    const every = Math.max(1, Math.ceil(there.length / most));
    const shape = (SYMBOLS[style.symbol] || SYMBOLS.circle)((style.width + 5) / 2);
    return there.filter((_, i) => i % every === 0).map(([x, y]) => `<path class="mark" transform="translate(${point([x, y])})" d="${shape}" fill="${style.color}"/>`).join("");
  }

  return { axis, band, bytes, count, line, number, seconds, symbols };
})();
