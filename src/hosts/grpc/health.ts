/** The gRPC Health Checking Protocol. The server is as healthy as the coordinator that it forwards to. */
import { status, type ServerWritableStream } from "@grpc/grpc-js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  HealthCheckResponse_ServingStatus as Serving,
  type HealthCheckRequest,
  type HealthCheckResponseSchema,
} from "../../coordinator/wire/generated/grpc/health/v1/health_pb.js";
import { grouped } from "../../common/status/grouped.ts";
import { services } from "./raw-service.ts";

type Answer = MessageInitShape<typeof HealthCheckResponseSchema>;
type Watcher = ServerWritableStream<HealthCheckRequest, Answer>;

/** The coordinator shares the result of a check among all who ask within 5 s. */
const LOOK_EVERY_MS = 5_000;
/** They take some 40 MB. */
const MAX_WATCHERS = 1_000;

export class HealthOfCoordinator {
  readonly #isReady: () => Promise<boolean>;
  readonly #watchers = new Map<Watcher, Serving | undefined>();
  #checked: { atMs: number; answer: Promise<Serving> } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isDraining = false;

  constructor(isReady: () => Promise<boolean>) {
    this.#isReady = isReady;
  }

  /** Undefined: there is no such service. */
  async check(service: string): Promise<Serving | undefined> {
    return isKnown(service) ? this.#serving() : undefined;
  }

  async list(): Promise<Record<string, Answer>> {
    const serving = await this.#serving();
    return Object.fromEntries(
      ["", ...services.map(({ typeName }) => typeName)].map((name) => [name, { status: serving }]),
    );
  }

  /** Writes the status to the stream now, and whenever it changes. */
  watch(watcher: Watcher): void {
    if (this.#watchers.size >= MAX_WATCHERS) this.#makeRoom();
    this.#watchers.set(watcher, undefined);
    const leave = (): void => void this.#watchers.delete(watcher);
    watcher.on("cancelled", leave);
    watcher.on("close", leave);
    watcher.on("error", leave);
    void this.#tell([watcher]);
    this.#timer ??= setInterval(() => void this.#tell(this.#watchers.keys()), LOOK_EVERY_MS).unref();
  }

  /** Ends the first watch of the connection that has most, so that one client cannot keep others away. */
  #makeRoom(): void {
    const byConnection = grouped(this.#watchers.keys(), (watcher) => watcher.getPeer());
    let most: readonly Watcher[] = [];
    for (const watchers of byConnection.values()) if (watchers.length > most.length) most = watchers;
    most[0]?.emit("error", {
      code: status.RESOURCE_EXHAUSTED,
      details: `${MAX_WATCHERS} watches run here, most of them of this connection; use Check, or watch again`,
    });
  }

  /** Tells everybody that the server stops, and ends all watches. */
  drain(): void {
    this.#isDraining = true;
    clearInterval(this.#timer);
    for (const watcher of this.#watchers.keys()) {
      watcher.write({ status: Serving.NOT_SERVING });
      watcher.end();
    }
    this.#watchers.clear();
  }

  async #tell(watchers: Iterable<Watcher>): Promise<void> {
    if (this.#watchers.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const serving = await this.#serving();
    for (const watcher of watchers) {
      if (!this.#watchers.has(watcher)) continue;
      const now = isKnown(watcher.request.service) ? serving : Serving.SERVICE_UNKNOWN;
      if (now === this.#watchers.get(watcher)) continue;
      this.#watchers.set(watcher, now);
      watcher.write({ status: now });
    }
  }

  #serving(): Promise<Serving> {
    if (this.#isDraining) return Promise.resolve(Serving.NOT_SERVING);
    const now = Date.now();
    if (this.#checked === undefined || now - this.#checked.atMs >= LOOK_EVERY_MS)
      this.#checked = { atMs: now, answer: this.#look() };
    return this.#checked.answer;
  }

  async #look(): Promise<Serving> {
    const isReady = await this.#isReady().catch(() => false);
    return isReady ? Serving.SERVING : Serving.NOT_SERVING;
  }
}

const isKnown = (service: string): boolean =>
  service === "" || services.some(({ typeName }) => typeName === service);
