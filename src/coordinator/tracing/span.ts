/** The values of the OTLP enum. */
export const spanKinds = { server: 2, client: 3 } as const;

export type SpanKind = keyof typeof spanKinds;

/** They have ids, codes and counts. They never have names, keys or tokens. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span, finished or not. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly startedAtMs: number;
  endedAtMs: number | undefined;
  attributes: Attributes;
  isError: boolean;
}
