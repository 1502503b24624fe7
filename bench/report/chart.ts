export interface Line {
  name: string;
  points: readonly (readonly [number, number])[];
}

const WIDTH = 770;
const HEIGHT = 400;
const LEFT = 60;
const RIGHT = 180;
const TOP = 40;
const BOTTOM = 50;
const COLORS = [
  "#d1495b",
  "#00798c",
  "#edae49",
  "#30638e",
  "#8d96a3",
  "#66a182",
  "#7b5ea7",
  "#3d405b",
  "#e07a5f",
];

/** A line chart with two logarithmic axes, as SVG text. */
export function lineChart(title: string, xLabel: string, yLabel: string, lines: readonly Line[]): string {
  const all = lines.flatMap(({ points }) => points);
  const scale = (values: number[], from: number, to: number): ((value: number) => number) => {
    const [low, high] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))];
    return (value) => from + ((Math.log10(value) - low) / (high - low || 1)) * (to - from);
  };
  const ticks = tickValues(all.map(([, y]) => y));
  const x = scale(
    all.map(([value]) => value),
    LEFT,
    WIDTH - RIGHT,
  );
  const y = scale(ticks, HEIGHT - BOTTOM, TOP);
  const xs = [...new Set(all.map(([value]) => value))];
  const text = (atX: number, atY: number, anchor: string, words: string, more = ""): string =>
    `<text x="${atX.toFixed(1)}" y="${atY.toFixed(1)}" text-anchor="${anchor}"${more}>${words}</text>`;
  const drawn = lines.map(({ name, points }, index) => {
    const color = COLORS[index % COLORS.length] ?? "#000";
    const path = points
      .map(([px, py], at) => `${at === 0 ? "M" : "L"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`)
      .join(" ");
    const dots = points
      .map(([px, py]) => `<circle cx="${x(px).toFixed(1)}" cy="${y(py).toFixed(1)}" r="3" fill="${color}"/>`)
      .join("");
    const label = text(WIDTH - RIGHT + 24, TOP + 18 * index + 4, "start", name);
    const corner = `x="${WIDTH - RIGHT + 8}" y="${TOP + 18 * index - 6}"`;
    const swatch = `<rect ${corner} width="12" height="12" fill="${color}"/>`;
    return `<path d="${path}" fill="none" stroke="${color}" stroke-width="2"/>${dots}${swatch}${label}`;
  });
  const font = 'font-family="sans-serif" font-size="12"';
  const opening = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" ${font}`;
  return [
    `${opening} role="img" aria-label="${title}">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(LEFT, 22, "start", title, ' font-size="15" font-weight="bold"'),
    ...ticks.map((tick) => {
      const gridLine = `<path d="M${LEFT} ${y(tick).toFixed(1)}H${WIDTH - RIGHT}" stroke="#ddd"/>`;
      return `${gridLine}${text(LEFT - 6, y(tick) + 4, "end", String(tick))}`;
    }),
    ...xs.map((value) => text(x(value), HEIGHT - BOTTOM + 18, "middle", String(value))),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "middle", xLabel),
    text(14, TOP - 12, "start", yLabel),
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
}

/** The values 1, 2 and 5 of each decade that enclose all given values. */
function tickValues(values: readonly number[]): number[] {
  const steps = [1, 2, 5];
  const ticks: number[] = [];
  for (
    let decade = Math.floor(Math.log10(Math.min(...values)));
    decade <= Math.ceil(Math.log10(Math.max(...values)));
    decade += 1
  )
    for (const step of steps) ticks.push(step * 10 ** decade);
  const first = ticks.findLastIndex((tick) => tick <= Math.min(...values));
  const last = ticks.findIndex((tick) => tick >= Math.max(...values));
  return ticks.slice(Math.max(0, first), last + 1);
}
