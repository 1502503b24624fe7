/**
 * Calls a hook and ignores its errors: a hook must not change an answer. An asynchronous hook must not cause
 * an unhandled rejection, which would end a process.
 */
export function callHook<Event>(hook: ((event: Event) => unknown) | undefined, event: Event): void {
  const called = async (): Promise<unknown> => hook?.(event);
  called().catch(() => {});
}
