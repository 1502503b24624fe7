/**
 * `npm run sim:routes`: counts what routers ask of shards at GitLab's load, in virtual time, and the bytes of
 * reports. Takes some minutes. Exits with 1 if a bar is missed.
 */
import {
  figuresByAge,
  figuresOfReports,
  figuresWithDefaultMemory,
  figuresWithReports,
  isMissed,
  loadByAge,
  loadWithReports,
  reportSizes,
  type Figure,
} from "./bars.ts";

const parts: readonly (() => Promise<Figure[]>)[] = [
  async () => figuresOfReports(reportSizes(300)),
  async () => figuresByAge(await loadByAge(60)),
  async () => figuresWithReports(await loadWithReports()),
  figuresWithDefaultMemory,
];

for (const part of parts) {
  for (const figure of await part()) {
    const { what, value, most } = figure;
    const bar = most === undefined ? "" : `, at most ${most}${isMissed(figure) ? ": MISSED" : ""}`;
    process.stdout.write(`${what}: ${Number(value.toPrecision(5))}${bar}\n`);
    if (isMissed(figure)) process.exitCode = 1;
  }
}
