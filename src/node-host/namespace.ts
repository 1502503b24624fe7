import type { Ports } from "../core/ports.ts";
import type { TestClock } from "../testing/clock.ts";
import { HostedObject, type Instance } from "./hosted-object.ts";

/** A Durable Object namespace in this process. It makes an object when its name is first used. */
export class HostedNamespace {
  readonly #clock: TestClock;
  readonly #log: Ports["log"];
  readonly #start: (name: string, ports: Ports) => Instance;
  readonly #objects = new Map<string, HostedObject>();

  constructor(clock: TestClock, log: Ports["log"], start: (name: string, ports: Ports) => Instance) {
    this.#clock = clock;
    this.#log = log;
    this.#start = start;
  }

  /** A stub: every method of it calls the object. */
  getByName(name: string): object {
    const object = this.#object(name);
    return new Proxy(
      {},
      {
        // An object with a `then` would be treated as a promise.
        get: (_, method) =>
          typeof method === "string" && method !== "then"
            ? (message: unknown) => object.call(method, message)
            : undefined,
      },
    );
  }

  get objects(): Iterable<HostedObject> {
    return this.#objects.values();
  }

  #object(name: string): HostedObject {
    const known = this.#objects.get(name);
    if (known !== undefined) return known;
    const object = new HostedObject(this.#clock, this.#log, (ports) => this.#start(name, ports));
    this.#objects.set(name, object);
    return object;
  }
}
