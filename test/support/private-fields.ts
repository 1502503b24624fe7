import { Session, type Runtime } from "node:inspector";

/**
 * Returns the value of a private field, so that a test can see how much an object keeps in memory. The
 * debugger's protocol is the only way to read a `#field` from outside, and keeps the sources free of code for
 * tests.
 */
export function privateField(owner: object, name: string): unknown {
  const session = new Session();
  session.connect();
  const shared = globalThis as { passed?: unknown };
  // Calls from the same thread are answered before `post` returns.
  const post = (method: string, params: object): object => {
    let answer: object | undefined;
    session.post(method, params, (error: Error | null, result?: object) => {
      if (error !== null) throw new Error(`${method} failed: ${JSON.stringify(error)}`);
      answer = result;
    });
    if (answer === undefined) throw new Error(`${method} was not answered at once`);
    return answer;
  };
  try {
    shared.passed = owner;
    const { result } = post("Runtime.evaluate", {
      expression: "globalThis.passed",
    }) as Runtime.EvaluateReturnType;
    const { privateProperties = [] } = post("Runtime.getProperties", {
      objectId: result.objectId,
      ownProperties: true,
    }) as { privateProperties?: Runtime.PropertyDescriptor[] };
    const found = privateProperties.find((property) => property.name === name);
    if (found === undefined) throw new Error(`${owner.constructor.name} has no field ${name}`);
    if (found.value?.objectId === undefined) return found.value?.value;
    post("Runtime.callFunctionOn", {
      objectId: found.value.objectId,
      functionDeclaration: "function () { globalThis.passed = this; }",
    });
    return shared.passed;
  } finally {
    delete shared.passed;
    session.disconnect();
  }
}

/** Follows a path of private fields: `#deliveries.#open`. */
export const privatePath = (owner: object, path: string): unknown =>
  path.split(".").reduce<unknown>((each, name) => privateField(each as object, name), owner);
