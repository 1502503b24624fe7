/**
 * Logs one event as a line of JSON. Callers pass ids, codes and counts. They never pass names, keys or
 * tokens.
 */
export function logEvent(event: string, fields: Record<string, string | number | boolean>): void {
  // oxlint-disable-next-line no-console -- the only place that prints: the platform collects the lines
  console.log(JSON.stringify({ event, ...fields }));
}
