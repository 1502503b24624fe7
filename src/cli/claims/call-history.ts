import { errorOf } from "../../client/errors.ts";
import { readProblem } from "../../client/problem.ts";
import type { RawRequest } from "../connection/send.ts";
import type { Context } from "../framework/context.ts";

/** Calls a route of the history of names, which the client leaves out. Throws its refusal as an error. */
export async function callHistory<T>(context: Context, request: RawRequest): Promise<T> {
  const { status, text, header } = await context.send(request);
  if (status !== 200) throw errorOf(readProblem(status, { get: header }, text));
  return JSON.parse(text) as T;
}
