/**
 * The day, counted from 1970. Suites with too many cases for every run test another part of them each day.
 * The variable TEST_DAY selects a day, in order to repeat it.
 */
export const today = Number(process.env["TEST_DAY"] ?? Math.floor(Date.now() / 86_400_000));
