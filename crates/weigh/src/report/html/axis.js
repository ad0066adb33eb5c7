// Ticks of an axis: [value, label] each.

/** 1, 2 or 5 times a power of ten, not below `least`. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= least * (1 - 1e-9));
}

/** What a value is divided by, and the unit it then has. */
function prefix(scale, highest) {
  const [unit, per = ""] = scale.split(/(?=\/)/);
  const power = (base, most) => Math.min(most, Math.max(0, Math.floor(Math.log(highest) / Math.log(base))));
  if (SIZES[unit]) {
    const [base, names] = SIZES[unit];
    const place = names.length > 1 ? power(base, 5) : 0;
    return [place === 0 ? 1 : base ** place, ` ${names[place]}${per}`];
  }
  if (unit === "count") {
    const place = highest < 10000 ? 0 : power(1000, 3);
    return [1000 ** place, ["", "k", "M", "G"][place] + per];
  }
  const sign = { joules: "J", watts: "W", hertz: "Hz" }[unit];
  if (sign) {
    const place = power(1000, 3);
    return [1000 ** place, ` ${["", "k", "M", "G"][place]}${sign}`];
  }
  if (unit === "share") return [0.01, " %"];
  if (unit === "celsius") return [1, " °C"];
  if (unit === "cores") return [1, ""];
  if (highest >= 7200) return [3600, " h"];
  if (highest >= 120) return [60, " min"];
  return highest >= 1 ? [1, " s"] : [1e-3, " ms"];
}

/** Ticks from zero to a round value that is not below `highest`: the last one ends the axis. */
function valueTicks(scale, highest, about) {
  const top = highest > 0 ? highest : scale.includes("bytes") ? 1024 : 1;
  const [factor, unit] = prefix(scale, top);
  let step = roundStep(top / factor / about);
  // Counts have no fractions.
  if (scale === "count") step = Math.max(1, step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const places = Math.max(1, Math.ceil(top / factor / step - 1e-9));
  return Array.from({ length: places + 1 }, (_, place) => {
    const label = place === 0 ? "0" : (place * step).toFixed(decimals) + unit;
    return [place * step * factor, label];
  });
}

/** Round steps of time. */
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
const DAY = 86400;

function timeStep(least) {
  if (least < 1) return roundStep(least);
  return TIMES.find((step) => step >= least) ?? roundStep(least / DAY) * DAY;
}

/** A time, as exact as steps of this length need it: `1 h 30 min`, `2 min 0.5 s`. */
function moment(value, step) {
  if (value < step / 2) return "0";
  const decimals = (unit) => Math.max(0, -Math.floor(Math.log10(step * unit) + 1e-9));
  if (step < 0.1 && value < 1) return `${(value * 1e3).toFixed(decimals(1e3))} ms`;
  const whole = step < 1 ? Math.floor(value / 60 + 1e-9) * 60 : Math.round(value);
  const parts = [
    [Math.floor(whole / DAY), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const words = parts.filter(([number]) => number > 0).map((part) => part.join(" "));
  if (step < 1) words.push(`${Math.max(0, value - whole).toFixed(decimals(1))} s`);
  return words.join(" ");
}

/** The time under the cursor, to the precision of a pixel. */
function pointed(value, span) {
  const step = timeStep(span / 500);
  return moment(Math.round(value / step) * step, step);
}

/** Ticks of time in a range, as many as fit with their labels. */
function timeTicks(from, to, width) {
  let ticks = [];
  for (let about = Math.max(4, Math.floor(width / 95)); about > 0; about -= 1) {
    const step = timeStep((to - from) / about);
    const first = Math.ceil(from / step - 1e-6);
    const length = Math.floor(to / step + 1e-6) - first + 1;
    ticks = Array.from({ length }, (_, place) => (first + place) * step);
    ticks = ticks.map((value) => [value, moment(value, step)]);
    const widest = Math.max(0, ...ticks.map(([, label]) => label.length)) * 6.5 + 14;
    if (widest <= (step / (to - from)) * width) break;
  }
  return ticks;
}
