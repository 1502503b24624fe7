/**
 * The day, counted from 1970. Suites with too many cases for every run test another part of them each day.
 * The variable TEST_DAY selects a day, in order to repeat it. `all` selects the cases of every day.
 */
const given = process.env["TEST_DAY"];

/** Whether every case runs, as in `npm run test:deep`. */
const isEveryDay = given === "all";
export const today = dayOf(isEveryDay ? undefined : given);

function dayOf(day: string | undefined): number {
  if (day === undefined) return Math.floor(Date.now() / 86_400_000);
  if (!/^\d{1,6}$/.test(day))
    throw new Error(`TEST_DAY must be all, or a number of days since 1970, not ${JSON.stringify(day)}`);
  return Number(day);
}

/**
 * The cases of a day: every `parts`th one, and at least one. All of them have had their turn after `parts`
 * days, or after as many days as there are cases.
 */
export function ofDay<Case>(day: number, cases: readonly Case[], parts: number): readonly Case[] {
  const turns = Math.min(parts, cases.length);
  return cases.filter((_, index) => index % turns === day % turns);
}

export const ofToday = <Case>(cases: readonly Case[], parts: number): readonly Case[] =>
  isEveryDay ? cases : ofDay(today, cases, parts);
