import type { Handlers, MethodList } from "./method.ts";
import type { Refusal } from "./refusal.ts";
import { defineServed, type Checked, type Measures } from "./serve.ts";
import type { WritePoint } from "./write-points.ts";
import type { Steps, StepsByCapability } from "./tables.ts";

/** What a capability adds to one kind of object. */
export interface Half<Part, Hooks, List extends MethodList = MethodList> {
  /** Its tables. The first step makes them unless they exist. */
  readonly steps?: Steps;
  /** Its durable writes. */
  readonly writes?: readonly WritePoint[];
  readonly methods: List;
  /** Makes its part of an object. It may read rows, but sends nothing and sets no alarm (M3). */
  make(part: Part): Made<Hooks, List>;
}

/** What a capability makes for one object. */
interface Made<Hooks, List extends MethodList = MethodList> {
  readonly handlers: Handlers<List>;
  readonly measures?: Measures<List>;
  readonly hooks?: Hooks;
  /** What it keeps in memory. Tests look into it (M6). */
  readonly parts?: object;
}

/** What capabilities add to the parts of an object. */
export interface Extended<Hooks> {
  readonly hooks: HookLists<Hooks>;
  /** The parts of capabilities, by their names. */
  readonly capabilities: Record<string, object>;
}

/** The halves of all capabilities for one kind of object, by name. */
export type Halves<Part, Hooks> = Readonly<Record<string, Half<Part, Hooks>>>;

/** For each hook, what the capabilities do at it, in their order. */
export type HookLists<Hooks> = { readonly [Name in keyof Hooks]-?: NonNullable<Hooks[Name]>[] };

export const stepsOf = (halves: Halves<never, unknown>): StepsByCapability =>
  Object.fromEntries(
    Object.entries(halves).flatMap(([name, { steps }]) => (steps === undefined ? [] : [[name, steps]])),
  );

/** Makes the parts of the capabilities, and gives an object their methods and hooks. */
export function addHalves<Part extends Extended<Hooks>, Hooks extends object>(
  object: object,
  part: Part,
  halves: Halves<Part, Hooks>,
  checked: Checked,
): void {
  for (const [capability, half] of Object.entries(halves)) {
    const { handlers, measures = {}, hooks = {}, parts = {} } = half.make(part);
    part.capabilities[capability] = parts;
    defineServed(object, half.methods, handlers, measures, checked);
    for (const name of Object.keys(hooks) as (keyof Hooks)[]) {
      const hook = (hooks as Hooks)[name];
      if (hook !== undefined && hook !== null) part.hooks[name].push(hook);
    }
  }
}

/** Returns the first refusal of what guards a step. */
export function guarded<Message>(
  guards: readonly ((message: Message) => Refusal | undefined)[],
  message: Message,
): Refusal | undefined {
  for (const guard of guards) {
    const refusal = guard(message);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Adds the fields of capabilities to those that the kernel has of an answer. */
export const withFields = <Answer extends object, Args extends unknown[] = []>(
  own: Partial<Answer>,
  hooks: readonly ((...args: Args) => Partial<Answer>)[],
  ...args: Args
): Answer => Object.assign(own, ...hooks.map((hook) => hook(...args))) as Answer;
