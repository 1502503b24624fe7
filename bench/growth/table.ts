import { median } from "../report/figures.ts";
import type { Result } from "./results.ts";
import { isBase, MANY_CLAIMS, type Axis } from "./variants.ts";
import { works, type Work } from "./caller.ts";

export interface Row {
  value: number;
  work: Work;
  perSecond: number;
  p50Ms: number;
  /** Computed from all rounds together, because occasional work such as a sweep occurs in few of them. */
  cpuMs: number;
  errors: number;
  /**
   * The median over the rounds of the ratio to the base in the same round. Other load on the machine affects
   * both.
   */
  rateRatio: number;
  cpuRatio: number;
}

const sumOf = (results: readonly Result[], figure: (result: Result) => number): number =>
  results.reduce((sum, result) => sum + figure(result), 0);
const rateOf = ({ turns, seconds }: Result): number => turns / seconds;
const cpuOf = ({ cpuMs, turns }: Result): number => cpuMs / turns;

/** One row for each work and value of the axis, from the results of one commit. */
export function rowsOf(axis: Axis, results: readonly Result[]): Row[] {
  const values = [...new Set(results.map(({ variant }) => variant[axis]))].toSorted((a, b) => a - b);
  return works.flatMap((work) =>
    values.flatMap((value) => {
      const found = results.filter((result) => result.work === work && result.variant[axis] === value);
      return found.length === 0 ? [] : [rowOf(axis, value, found, results)];
    }),
  );
}

/** The ratios of results of one work to the base of the axis in the same rounds. */
function ratiosOf(
  axis: Axis,
  found: readonly Result[],
  results: readonly Result[],
  figure: (result: Result) => number,
): number[] {
  return found.flatMap((result) => {
    const base = results.find(
      ({ work, round, variant }) => work === result.work && round === result.round && isBase(axis, variant),
    );
    return base === undefined || figure(base) === 0 ? [] : [figure(result) / figure(base)];
  });
}

/** What `work` costs with `MANY_CLAIMS`, relative to the base, in each round. */
export function ratiosOfClaims(
  results: readonly Result[],
  work: Work,
  figure: (result: Result) => number,
): number[] {
  const ofAxis = results.filter(({ axis }) => axis === "claims");
  const found = ofAxis.filter((result) => result.work === work && result.variant.claims === MANY_CLAIMS);
  return ratiosOf("claims", found, ofAxis, figure);
}

function rowOf(axis: Axis, value: number, found: readonly Result[], results: readonly Result[]): Row {
  const work = found[0]?.work ?? "cycles";
  const ratios = (figure: (result: Result) => number): number[] => ratiosOf(axis, found, results, figure);
  return {
    value,
    work,
    perSecond: median(found.map(rateOf)),
    p50Ms: median(found.map(({ p50Ms }) => p50Ms)),
    cpuMs: sumOf(found, ({ cpuMs }) => cpuMs) / sumOf(found, ({ turns }) => turns),
    errors: sumOf(found, ({ errors }) => errors),
    rateRatio: median(ratios(rateOf)),
    cpuRatio: median(ratios(cpuOf)),
  };
}

export function tableOf(axis: Axis, results: readonly Result[]): string {
  const lines = rowsOf(axis, results).map(
    ({ value, work, perSecond, p50Ms, cpuMs, errors, rateRatio, cpuRatio }) => {
      const figures = [
        perSecond.toFixed(0),
        p50Ms.toFixed(2),
        cpuMs.toFixed(2),
        String(errors),
        shown(rateRatio),
        shown(cpuRatio),
      ];
      return `| ${[work, value.toLocaleString("en"), ...figures].join(" | ")} |`;
    },
  );
  return [
    `| work | ${axis} | per second | p50 ms | CPU ms each | errors | rate ÷ base | CPU ÷ base |`,
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...lines,
  ].join("\n");
}

const shown = (ratio: number): string => (Number.isNaN(ratio) ? "" : ratio.toFixed(2));
