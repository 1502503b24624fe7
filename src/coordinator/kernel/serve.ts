import type { Handlers, Method, MethodList } from "./method.ts";
import type { Envelope } from "./messages.ts";
import type { Result } from "./refusal.ts";

/** Carries out a message, after its checks. */
export type Work<T> = () => Result<T> | Promise<Result<T>>;

/** Carries out a message, unless the checks of its method refuse it. */
export type Checked = (
  declared: Method<Envelope, unknown>,
  message: Envelope,
  work: Work<unknown>,
) => Promise<Result<unknown>>;

/** Counts or times a message, its checks included. */
type Measure<Message, Value> = {
  measure(message: Message, serve: () => Promise<Result<Value>>): Promise<Result<Value>>;
}["measure"];

/** What is measured of the methods of a list. */
export type Measures<List extends MethodList> = {
  readonly [Name in keyof List]?: List[Name] extends Method<infer Message, infer Value>
    ? Measure<Message, Value>
    : never;
};

/** A measure that counts messages. */
export const counting =
  (count: () => void) =>
  <T>(_: unknown, serve: () => Promise<T>): Promise<T> => {
    count();
    return serve();
  };

type Untyped = Readonly<Record<string, (message: Envelope) => Result<unknown> | Promise<Result<unknown>>>>;

/** Gives an object the methods of a list. */
export function defineServed<List extends MethodList>(
  object: object,
  methods: List,
  handlers: Handlers<List>,
  measures: Measures<List>,
  checked: Checked,
): void {
  for (const [name, declared] of Object.entries(methods)) {
    const handler = (handlers as Untyped)[name];
    if (handler === undefined) throw new TypeError(`nothing carries out the method ${name}`);
    const measure = measures[name] as Measure<Envelope, unknown> | undefined;
    const serve = (message: Envelope): Promise<Result<unknown>> =>
      checked(declared, message, () => handler(message));
    const value =
      measure === undefined
        ? serve
        : (message: Envelope): Promise<Result<unknown>> => measure(message, () => serve(message));
    Object.defineProperty(object, name, { configurable: true, writable: true, value });
  }
}
