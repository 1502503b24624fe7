import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

type Value =
  | { stringValue: string }
  | { intValue: string }
  | { doubleValue: number }
  | { boolValue: boolean };
type Attributes = { key: string; value: Value }[];

interface ExportRequest {
  resourceSpans: {
    resource: { attributes: Attributes };
    scopeSpans: { scope: { name: string }; spans: OtlpSpan[] }[];
  }[];
}

interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attributes;
  status: { code?: number };
}

/** A span as a collector has received it. */
export interface ReceivedSpan extends Omit<OtlpSpan, "attributes"> {
  /** The part that has recorded it. */
  part: string;
  attributes: Record<string, string | number | boolean>;
}

const plain = (attributes: Attributes): ReceivedSpan["attributes"] =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      "intValue" in value ? Number(value.intValue) : (Object.values(value)[0] as string | number | boolean),
    ]),
  );

/** A receiver of OTLP/HTTP in JSON, on this machine. */
export class Collector {
  readonly spans: ReceivedSpan[] = [];
  /** The headers of each request. */
  readonly requests: Record<string, string | string[] | undefined>[] = [];
  /** All that was received. */
  text = "";
  /** What it does with requests. `hang`: it never answers. */
  answer: "ok" | "hang" | "refuse" = "ok";
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.requests.push({ ...request.headers, path: request.url });
        if (this.answer === "hang") return;
        if (this.answer === "refuse") return void response.writeHead(503).end();
        this.#take(Buffer.concat(chunks).toString());
        response.writeHead(200, { "content-type": "application/json" }).end("{}");
      });
    });
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((ready) => collector.#server.listen(0, "127.0.0.1", ready));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The spans of one trace, in the order of their ends. */
  spansOf(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((stopped) => this.#server.close(stopped));
  }

  #take(body: string): void {
    this.text += body;
    for (const { resource, scopeSpans } of (JSON.parse(body) as ExportRequest).resourceSpans) {
      const part = String(plain(resource.attributes)["leasehold.part"]);
      for (const { spans } of scopeSpans)
        for (const span of spans) this.spans.push({ ...span, part, attributes: plain(span.attributes) });
    }
  }
}

/** Writes a trace as lines such as `worker beginLease > ledger.begin`: each span with those above it. */
export function pathsOf(spans: readonly ReceivedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const pathOf = ({ part, name, parentSpanId }: ReceivedSpan): string => {
    const parent = parentSpanId === undefined ? undefined : byId.get(parentSpanId);
    return `${parent === undefined ? "" : `${pathOf(parent)} > `}${part} ${name}`;
  };
  return spans.map(pathOf).toSorted();
}
