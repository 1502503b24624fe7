/**
 * Says that a list comes from a copy, so that nobody takes what is missing for what does not exist.
 *
 * @param what - the items in the plural, with their verb, such as "leases that were granted"
 * @param through - the copy has all items before this time; null: nobody knows
 */
export const copyNote = (what: string, through: string | null): string =>
  "This list is read from a copy that the cron makes once a minute. " +
  (through === null
    ? `No run has copied everything yet, so ${what} may be missing.`
    : `It has all ${what} before ${through}. Later ones are missing until the next run.`);
