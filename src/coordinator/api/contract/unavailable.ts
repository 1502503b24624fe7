import * as z from "zod";
import { wholeNumber } from "./fields.ts";
import { problem } from "./schemas.ts";

const { code, reason, field, detail } = problem.shape;

/** What a batch says of a name whose answer is unknown, while it has answers for others. */
export const unavailable = z.strictObject({
  code,
  reason,
  field,
  detail,
  retry_after_ms: wholeNumber.meta({ description: "Milliseconds to wait before asking again." }),
});

export const UNAVAILABLE_NAME =
  "A name whose answer is unknown, with the fields of the problem that a call for it alone would get. " +
  "Don't treat it as 'not found'.";
