/**
 * The day, counted from 1970. Suites with too many cases for every run test another part of them each day.
 * The variable TEST_DAY selects a day, in order to repeat it.
 */
export const today = dayOf(process.env["TEST_DAY"]);

function dayOf(given: string | undefined): number {
  if (given === undefined) return Math.floor(Date.now() / 86_400_000);
  if (!/^\d{1,6}$/.test(given))
    throw new Error(`TEST_DAY must be a number of days since 1970, not ${JSON.stringify(given)}`);
  return Number(given);
}
