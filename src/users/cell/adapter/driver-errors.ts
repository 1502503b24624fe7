import { DrizzleQueryError } from "drizzle-orm";

/**
 * Makes every statement of a drizzle database reject with the error of the driver, not with that of drizzle
 * around it, because the application may not know drizzle. It wraps drizzle's builders: each call on one
 * answers another, and a statement is sent by `then`.
 */
export const withDriverErrors = <T extends object>(builder: T): T =>
  new Proxy(builder, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...given: unknown[]): unknown => {
        // Native promises wait for the statement by a call of `then`, whose error they pass on.
        if (name === "then") return unwrapped(Promise.resolve(target)).then(...(given as []));
        const made: unknown = member.apply(target, given);
        return typeof made === "object" && made !== null ? withDriverErrors(made) : made;
      };
    },
  });

const unwrapped = (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: unknown) => {
    throw error instanceof DrizzleQueryError ? (error.cause ?? error) : error;
  });
