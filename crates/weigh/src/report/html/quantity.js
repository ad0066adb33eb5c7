// Formats quantities like the rest of the report.

const NOT_A_NUMBER = "n/a";

/** Puts the sign back after `write` has written the absolute value. */
function signed(value, write) {
  if (!Number.isFinite(value)) return NOT_A_NUMBER;
  const text = write(Math.abs(value));
  return value < 0 && /[1-9]/.test(text) ? `-${text}` : text;
}

/** Rounded to `most` decimals below 10, to one less below 100, and so on, with their number. */
function rounded(value, most) {
  for (let decimals = most; decimals > 0; decimals -= 1) {
    const scale = 10 ** decimals;
    const shown = Math.round(value * scale) / scale;
    if (shown < 10 ** (most + 1 - decimals)) return [shown, decimals];
  }
  return [Math.round(value), 0];
}

/** Units of sizes, and the base of their prefixes. */
const SIZES = {
  bytes: [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]],
  "decimal bytes": [1000, ["B", "kB", "MB", "GB", "TB", "PB", "EB"]],
  "plain bytes": [Infinity, ["B"]],
};

function bytes(size, [base, names] = SIZES.bytes) {
  return signed(size, (value) => {
    for (let power = 0, scaled = value; ; power += 1, scaled /= base) {
      const [shown, decimals] = power === 0 ? [Math.round(value), 0] : rounded(scaled, 2);
      if (shown < base || power + 1 === names.length) {
        return `${shown.toFixed(decimals)} ${names[power]}`;
      }
    }
  });
}

function seconds(span) {
  const two = (number) => String(number).padStart(2, "0");
  return signed(span, (value) => {
    if (value === 0) return "0 s";
    for (const [name, perSecond] of [["ns", 1e9], ["\u00b5s", 1e6], ["ms", 1e3]]) {
      const [shown, decimals] = rounded(value * perSecond, 1);
      if (shown < 1000) return `${shown.toFixed(decimals)} ${name}`;
    }
    if (Math.round(value * 100) < 6000) return `${(Math.round(value * 100) / 100).toFixed(2)} s`;
    const [whole, minutes, hours] = [1, 60, 3600].map((unit) => Math.round(value / unit));
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
    if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
    return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
  });
}

function count(number) {
  return signed(number, (value) => {
    const [shown, decimals] = rounded(value, 1);
    if (!Number.isInteger(shown)) return shown.toFixed(decimals);
    return shown.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");
  });
}

function ratio(share) {
  const percent = share * 100;
  if (percent !== 0 && Math.abs(percent) < 0.1) return percent > 0 ? "< 0.1 %" : "> -0.1 %";
  const number = count(percent);
  return number === NOT_A_NUMBER ? number : `${number} %`;
}

/** A quantity of any other unit, with three digits. */
function scaled(amount, unit) {
  const prefixes = [["m", 1e-3], ["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];
  return signed(amount, (value) => {
    if (value === 0) return `0 ${unit}`;
    for (const [prefix, size] of prefixes) {
      const [shown, decimals] = rounded(value / size, 2);
      if (shown < 1000 || prefix === "T") return `${shown.toFixed(decimals)} ${prefix}${unit}`;
    }
    return NOT_A_NUMBER;
  });
}

const WRITERS = {
  seconds,
  cores: (value) => (Number.isFinite(value) ? `${value.toFixed(2)} cores` : NOT_A_NUMBER),
  share: ratio,
  joules: (value) => scaled(value, "J"),
  watts: (value) => scaled(value, "W"),
  hertz: (value) => scaled(value, "Hz"),
  celsius: (value) => (Number.isFinite(value) ? `${value.toFixed(0)} °C` : NOT_A_NUMBER),
  count,
  "count/s": (value) => `${count(value)}/s`,
};

for (const [name, sizes] of Object.entries(SIZES)) {
  WRITERS[name] = (value) => bytes(value, sizes);
  WRITERS[`${name}/s`] = (value) => `${bytes(value, sizes)}/s`;
}

/** A value of a scale as text; null is unknown. */
function shown(scale, value) {
  return value === null || value === undefined ? NOT_A_NUMBER : WRITERS[scale](value);
}
