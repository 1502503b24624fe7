import { defineMethods, type MethodList } from "../../coordinator/kernel/method.ts";
import {
  HostedObject,
  type Instance,
  type ObjectContext,
  type Sender,
  type StartInstance,
} from "./hosted-object.ts";
import type { ObjectStore } from "./object-store.ts";

interface NamespaceContext extends ObjectContext {
  /** Opens what an object has stored, or makes it. */
  store: (name: string) => ObjectStore;
}

/** The stubs of a namespace, as its callers see it. */
export interface Stubs {
  getByName(name: string): object;
}

type StubClass = new (object: HostedObject, sender: Sender | undefined) => object;

/** Makes the class of the stubs of a namespace: every method of a stub calls its object. */
function stubClass(methods: MethodList): StubClass {
  return class Stub {
    readonly #object: HostedObject;
    readonly #sender: Sender | undefined;

    static {
      defineMethods<Stub>(this.prototype, methods, (self, name, message) =>
        self.#object.call(name, message, self.#sender),
      );
    }

    constructor(object: HostedObject, sender: Sender | undefined) {
      this.#object = object;
      this.#sender = sender;
    }
  };
}

/** A Durable Object namespace in this process. It makes an object when its name is first used. */
export class HostedNamespace implements Stubs {
  readonly #context: NamespaceContext;
  readonly #start: (name: string, ...args: Parameters<StartInstance>) => Instance;
  readonly #Stub: StubClass;
  readonly #objects = new Map<string, HostedObject>();
  #hasEnded = false;

  constructor(
    context: NamespaceContext,
    methods: MethodList,
    start: (name: string, ...args: Parameters<StartInstance>) => Instance,
  ) {
    this.#context = context;
    this.#start = start;
    this.#Stub = stubClass(methods);
  }

  getByName(name: string): object {
    return this.#stub(name, undefined);
  }

  /** Stubs for an object of this host. */
  of(sender: Sender): Stubs {
    return { getByName: (name) => this.#stub(name, sender) };
  }

  get objects(): Iterable<HostedObject> {
    return this.#objects.values();
  }

  /** Returns an object, and sets the alarm that it has stored. */
  open(name: string): HostedObject {
    const known = this.#objects.get(name);
    if (known !== undefined) return known;
    if (this.#hasEnded) throw new Error("the host has ended");
    const object = new HostedObject(name, this.#context, this.#context.store(name), (...args) =>
      this.#start(name, ...args),
    );
    this.#objects.set(name, object);
    return object;
  }

  /** Ends all objects, and opens no others. */
  end(): void {
    this.#hasEnded = true;
    for (const object of this.#objects.values()) object.end();
  }

  #stub(name: string, sender: Sender | undefined): object {
    return new this.#Stub(this.open(name), sender);
  }
}
