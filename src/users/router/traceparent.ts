/** The `traceparent` header (W3C Trace Context, Level 1). */

const FORM = /^(?!ff)([\da-f]{2})-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(-[\x21-\x7e]*)?$/;

/** Whether a header identifies a span. Later versions than 00 may have more fields. */
export function isTraceparent(header: string): boolean {
  const [found, version, more] = (header.length <= 512 && FORM.exec(header)) || [];
  return found !== undefined && (version !== "00" || more === undefined);
}

/** Begins a trace. It is sampled with this probability. */
export const newTraceparent = (share: number): string =>
  // The digits of a UUID's version and variant are never 0.
  `00-${newDigits()}-${newDigits().slice(-16)}-${Math.random() < share ? "01" : "00"}`;

const newDigits = (): string => crypto.randomUUID().replaceAll("-", "");
