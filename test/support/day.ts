/** The day, counted from 1970. Suites with too many cases for every change run another part of them each day; TEST_DAY repeats one. */
export const today = Number(process.env["TEST_DAY"] ?? Math.floor(Date.now() / 86_400_000));
