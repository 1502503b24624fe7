import { howToEnd, type Operation } from "../capabilities/operations/operations.ts";

/** An operation as answers and problems show it. */
export const toApiOperation = (operation: Operation) => ({
  id: operation.id,
  kind: operation.kind,
  about: operation.about,
  started_at: new Date(operation.startedAtMs).toISOString(),
  started_by: operation.startedBy,
  how_to_end: howToEnd(operation),
});
