/**
 * Returns what another part gets of a message. Both the message and the copy are frozen, with everything in
 * them, so that a part which changes a message after it was sent fails: the Node host doesn't copy them.
 */
export const copied = <T>(message: T): T => frozen(structuredClone(frozen(message)));

function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) frozen(part);
  return value;
}
