/** A span of a trace, as W3C Trace Context identifies it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  isSampled: boolean;
}

const FORM = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
const SAMPLED = 1;

/**
 * Reads a `traceparent` header (W3C Trace Context, Level 1). Returns undefined if it is not valid. A later
 * version may have more fields, which are ignored.
 */
export function parseTraceparent(header: string | undefined): TraceContext | undefined {
  // No version that exists is longer than 55 characters.
  if (header === undefined || header.length > 512) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = FORM.exec(header) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export const formatTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
