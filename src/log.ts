/** One structured line per event. Fields never hold names, keys or tokens: callers pass ids, codes and counts. */
export function logEvent(event: string, fields: Record<string, string | number | boolean>): void {
  // oxlint-disable-next-line no-console -- the one place: the platform collects what is printed
  console.log(JSON.stringify({ event, ...fields }));
}
